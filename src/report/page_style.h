#pragma once

#include <string_view>

namespace stretto::report {

/// The style sheet of report.html: light and dark by the reader's preference, one column on narrow
/// screens, plain when printed. Colour classes of curves: ink1 (train) … ink3.
std::string_view page_style();

}  // namespace stretto::report

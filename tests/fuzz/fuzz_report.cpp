// Fuzz target: any bytes as report.json. Every outcome but a page or an error in words is a bug.
// What was accepted is cut to what a page shows when it is written; from then on, page and file
// stay as they are.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "report/html_report.h"
#include "report/report_data.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stretto;
  try {
    report::ReportContent first, second;
    report::parse_report_data({reinterpret_cast<const char*>(data), size}, "fuzz", first);
    if (report::render_html(first).empty()) std::abort();
    const std::string written = report::report_data_json(first);
    report::parse_report_data(written, "written", second);
    if (report::report_data_json(second) != written) std::abort();
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with("written")) std::abort();
  }
  return 0;
}

#include "report/sample_rows.h"

#include <algorithm>

#include "report/page.h"
#include "report/sample.h"
#include "report/utf8.h"

namespace stretto::report {

SampleRows trimmed_rows(const SampleRows& rows) {
  SampleRows kept;
  for (size_t i = 0; i < std::min(rows.size(), kMaxRows); ++i) {
    kept.emplace_back(cut_text(rows[i].first, kMaxCell), cut_text(rows[i].second, kMaxText));
  }
  return kept;
}

}  // namespace stretto::report

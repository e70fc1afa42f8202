// libFuzzer target: any bytes as a manifest of sounds; the first byte chooses CSV, TSV or JSON
// lines. Rows come out, or Error; what is left out is counted.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/lines.h"
#include "data/media/media_rows.h"
#include "tests/data/memory_stream.h"
#include "tests/fuzz/one_reader.h"

namespace {

using namespace stretto;

void require(bool fact) {
  if (!fact) std::abort();
}

void read_rows(std::string_view bytes, data::MediaListFormat format,
               const data::BadSampleRule& rule) {
  const data::MediaColumns columns{.text = "text", .offset = "offset", .duration = "duration"};
  data::BadSamples bad(rule);
  int64_t line = 0;
  try {
    data::LineReader lines(std::make_unique<testing::MemoryStream>(bytes), "fuzz");
    data::read_media_rows(std::move(lines), format, columns, bad, [&](const data::MediaRow& row) {
      require(row.line > line && !row.path.empty());
      require(std::isfinite(row.offset) && row.offset >= 0);
      require(std::isfinite(row.duration) && row.duration >= 0);
      line = row.line;
    });
    require(rule.skips || bad.left_out().count == 0);
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned /*seed*/) {
  return testing::mutate_for_its_reader(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr std::array kFormats{data::MediaListFormat::kCsv, data::MediaListFormat::kTsv,
                                data::MediaListFormat::kJsonLines};
  const auto format = kFormats[data[0] % kFormats.size()];
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  read_rows(bytes, format, {});
  read_rows(bytes, format, {.skips = true, .most = 3});
  return 0;
}

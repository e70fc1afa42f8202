#include "report/report_data.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/base64.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "report/heat_map.h"
#include "report/media.h"
#include "report/sample_rows.h"
#include "report/utf8.h"

namespace stretto::report {
namespace {

using Rows = SampleRows;
using OrderedJson = nlohmann::ordered_json;

constexpr int64_t kFormat = 1;
constexpr size_t kMostBytes = size_t{32} << 20;  // far above 50 samples of the longest texts
constexpr size_t kMostPieces = 1024, kLongestPiece = 64;
constexpr double kSteps = 1e6;  // of attention between 0 and 1
constexpr const char* kRowsKind = "rows";
constexpr const char* kMarkedTextKind = "answer";
constexpr const char* kMatrixKind = "matrix";
constexpr const char* kMediaKind = "media";

std::vector<std::string> cut_pieces(const std::vector<std::string>& pieces) {
  std::vector<std::string> kept;
  for (size_t i = 0; i < std::min(pieces.size(), kMostPieces); ++i) {
    kept.push_back(cut_text(pieces[i], kLongestPiece));
  }
  return kept;
}

double in_steps(float weight) {
  const double value = std::isfinite(weight) ? std::clamp(double{weight}, 0.0, 1.0) : 0.0;
  return std::round(value * kSteps) / kSteps;
}

OrderedJson json_of(const Rows& rows) {
  auto list = OrderedJson::array();
  for (size_t i = 0; i < std::min(rows.size(), kMaxRows); ++i) {
    list.push_back({cut_text(rows[i].first, kMaxCell), cut_text(rows[i].second, kMaxCell)});
  }
  return list;
}

TextPairSample trimmed_one(const TextPairSample& sample) {
  TextPairSample kept{.input = cut_text(sample.input, kMaxText),
                      .output = cut_text(sample.output, kMaxText),
                      .reference = cut_text(sample.reference, kMaxText),
                      .input_pieces = cut_pieces(sample.input_pieces),
                      .output_pieces = cut_pieces(sample.output_pieces)};
  for (size_t row = 0; row < std::min(sample.attention.size(), kMostDrawnPieces); ++row) {
    const auto& whole = sample.attention[row];
    kept.attention.emplace_back();
    for (size_t i = 0; i < std::min(whole.size(), kMostDrawnPieces); ++i) {
      kept.attention.back().push_back(static_cast<float>(in_steps(whole[i])));
    }
  }
  return kept;
}

RowsSample trimmed_one(const RowsSample& sample) {
  return {.rows = trimmed_rows(sample.rows)};
}

MarkedTextSample trimmed_one(const MarkedTextSample& sample) {
  MarkedTextSample kept{.request = cut_text(sample.request, kMaxText),
                        .text = {},
                        .output = cut_text(sample.output, kMaxText),
                        .references = {},
                        .note = cut_text(sample.note, kMaxCell)};
  size_t left = kMaxText;
  for (size_t i = 0; i < std::min(sample.text.size(), kMaxStretches) && left > 0; ++i) {
    const auto& stretch = sample.text[i];
    kept.text.push_back(stretch);
    kept.text.back().text = cut_text(stretch.text, left);
    left -= std::min(left, count_code_points(kept.text.back().text));
  }
  for (size_t i = 0; i < std::min(sample.references.size(), kMaxReferences); ++i) {
    kept.references.push_back(cut_text(sample.references[i], kMaxCell));
  }
  return kept;
}

MatrixSample trimmed_one(const MatrixSample& sample) {
  MatrixSample kept{.title = cut_text(sample.title, kMaxCell),
                    .row_title = cut_text(sample.row_title, kMaxCell),
                    .column_title = cut_text(sample.column_title, kMaxCell)};
  const size_t columns = std::min(sample.columns.size(), kMaxMatrix);
  for (size_t i = 0; i < columns; ++i)
    kept.columns.push_back(cut_text(sample.columns[i], kMaxCell));
  const size_t rows = std::min({sample.rows.size(), sample.counts.size(), kMaxMatrix});
  for (size_t i = 0; i < rows; ++i) {
    kept.rows.push_back(cut_text(sample.rows[i], kMaxCell));
    kept.counts.push_back(sample.counts[i]);
    kept.counts.back().resize(columns);
  }
  return kept;
}

MediaSample trimmed_one(const MediaSample& sample) {
  size_t bytes_left = kMaxMedia;
  return kept_media(sample, bytes_left);
}

// The keys of a text pair are those of the first version, which knew no other kind.
OrderedJson json_of_one(const TextPairSample& sample) {
  auto attention = OrderedJson::array();
  for (const auto& row : sample.attention) {
    auto list = OrderedJson::array();
    for (const float weight : row) list.push_back(in_steps(weight));
    attention.push_back(std::move(list));
  }
  return {{"source", sample.input},
          {"hypothesis", sample.output},
          {"reference", sample.reference},
          {"source_pieces", sample.input_pieces},
          {"hypothesis_pieces", sample.output_pieces},
          {"attention", std::move(attention)}};
}

OrderedJson json_of_rows(const Rows& rows) {
  auto list = OrderedJson::array();
  for (const auto& [label, text] : rows) list.push_back({label, text});
  return list;
}

OrderedJson json_of_one(const RowsSample& sample) {
  return {{"kind", kRowsKind}, {"rows", json_of_rows(sample.rows)}};
}

OrderedJson json_of_one(const MarkedTextSample& sample) {
  auto stretches = OrderedJson::array();
  for (const auto& stretch : sample.text) {
    stretches.push_back({stretch.text, stretch.is_output, stretch.is_reference});
  }
  return {{"kind", kMarkedTextKind},           {"question", sample.request},
          {"paragraph", std::move(stretches)}, {"answer", sample.output},
          {"references", sample.references},   {"note", sample.note}};
}

OrderedJson json_of_one(const MatrixSample& sample) {
  return {{"kind", kMatrixKind},           {"title", sample.title},
          {"row_title", sample.row_title}, {"column_title", sample.column_title},
          {"rows", sample.rows},           {"columns", sample.columns},
          {"counts", sample.counts}};
}

OrderedJson json_of_one(const MediaSample& sample) {
  OrderedJson json{{"kind", kMediaKind},
                   {"mime", sample.mime},
                   {"words", sample.words},
                   {"note", sample.note},
                   {"bytes", base64(sample.bytes)}};
  if (!sample.rows.empty()) json["rows"] = json_of_rows(sample.rows);
  return json;
}

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

Rows rows_of(const nlohmann::json& list) {
  require(list.is_array() && list.size() <= kMaxRows, "a table is no list, or too long");
  Rows rows;
  for (const auto& row : list) {
    require(row.is_array() && row.size() == 2, "a row of a table is no pair");
    rows.emplace_back(row[0].get<std::string>(), row[1].get<std::string>());
  }
  return rows;
}

std::vector<std::string> pieces_of(const nlohmann::json& list) {
  require(list.is_array() && list.size() <= kMostPieces, "pieces are no list, or too many");
  return list.get<std::vector<std::string>>();
}

std::vector<std::vector<float>> attention_of(const nlohmann::json& list) {
  require(list.is_array() && list.size() <= kMostDrawnPieces, "attention has too many rows");
  std::vector<std::vector<float>> rows;
  for (const auto& row : list) {
    require(row.is_array() && row.size() <= kMostDrawnPieces, "attention has too many columns");
    rows.emplace_back();
    for (const auto& weight : row) {
      require(weight.is_number(), "attention is no number");
      rows.back().push_back(static_cast<float>(in_steps(weight.get<float>())));
    }
  }
  return rows;
}

MarkedTextSample marked_text_of(const nlohmann::json& json) {
  MarkedTextSample sample{.request = json.at("question").get<std::string>(),
                          .text = {},
                          .output = json.at("answer").get<std::string>(),
                          .references = json.at("references").get<std::vector<std::string>>(),
                          .note = json.at("note").get<std::string>()};
  require(sample.references.size() <= kMaxReferences, "a text has too many references");
  const auto& stretches = json.at("paragraph");
  require(stretches.is_array() && stretches.size() <= kMaxStretches,
          "a text is no list, or too long");
  for (const auto& stretch : stretches) {
    require(stretch.is_array() && stretch.size() == 3, "a stretch of a text is no triple");
    sample.text.push_back(
        {stretch[0].get<std::string>(), stretch[1].get<bool>(), stretch[2].get<bool>()});
  }
  return sample;
}

MatrixSample matrix_of(const nlohmann::json& json) {
  MatrixSample sample{.title = json.at("title").get<std::string>(),
                      .row_title = json.at("row_title").get<std::string>(),
                      .column_title = json.at("column_title").get<std::string>(),
                      .rows = json.at("rows").get<std::vector<std::string>>(),
                      .columns = json.at("columns").get<std::vector<std::string>>(),
                      .counts = {}};
  const auto& counts = json.at("counts");
  require(sample.rows.size() <= kMaxMatrix && sample.columns.size() <= kMaxMatrix &&
              counts.is_array() && counts.size() == sample.rows.size(),
          "a matrix is too large, or has another number of rows");
  for (const auto& row : counts) {
    require(row.is_array() && row.size() == sample.columns.size(), "a row of a matrix is too long");
    sample.counts.emplace_back();
    for (const auto& count : row) {
      constexpr int64_t kMost = int64_t{1} << 53;  // so that no sum of a row overflows
      require(
          count.is_number_integer() && count.get<int64_t>() >= 0 && count.get<int64_t>() <= kMost,
          "a count of a matrix is no whole number");
      sample.counts.back().push_back(count.get<int64_t>());
    }
  }
  return sample;
}

MediaSample media_of(const nlohmann::json& json) {
  MediaSample sample{.mime = json.at("mime").get<std::string>(),
                     .bytes = {},
                     .words = json.at("words").get<std::string>(),
                     .note = json.at("note").get<std::string>()};
  if (json.contains("rows")) sample.rows = rows_of(json.at("rows"));
  const auto& text = json.at("bytes").get_ref<const std::string&>();
  require(text.size() <= 2 * kMaxMedia, "a sound or picture is too large");
  auto bytes = bytes_of_base64(text);
  require(bytes.has_value(), "the bytes of a sound or picture are not base64");
  sample.bytes = std::move(*bytes);
  require(sample.bytes.empty() || is_keepable(sample),
          "a sound or picture is too large, or of another kind");
  return sample;
}

Sample sample_of(const nlohmann::json& json) {
  require(json.is_object(), "a sample is no object");
  if (json.contains("kind")) {
    if (json.at("kind") == kMarkedTextKind) return marked_text_of(json);
    if (json.at("kind") == kMatrixKind) return matrix_of(json);
    if (json.at("kind") == kMediaKind) return media_of(json);
    require(json.at("kind") == kRowsKind, "a sample of another kind");
    return RowsSample{rows_of(json.at("rows"))};
  }
  return TextPairSample{.input = json.at("source").get<std::string>(),
                        .output = json.at("hypothesis").get<std::string>(),
                        .reference = json.at("reference").get<std::string>(),
                        .input_pieces = pieces_of(json.at("source_pieces")),
                        .output_pieces = pieces_of(json.at("hypothesis_pieces")),
                        .attention = attention_of(json.at("attention"))};
}

}  // namespace

Sample trimmed(const Sample& sample) {
  return std::visit([](const auto& of_kind) -> Sample { return trimmed_one(of_kind); }, sample);
}

std::vector<Sample> trimmed(const std::vector<Sample>& samples) {
  std::vector<Sample> kept;
  size_t bytes_left = kMaxAllMedia;
  for (size_t i = 0; i < std::min(samples.size(), kMaxSamples); ++i) {
    const auto* media = std::get_if<MediaSample>(&samples[i]);
    kept.push_back(media != nullptr ? kept_media(*media, bytes_left) : trimmed(samples[i]));
  }
  return kept;
}

std::string report_data_json(const ReportContent& content) {
  auto samples = OrderedJson::array();
  for (const Sample& sample : trimmed(content.samples)) {
    samples.push_back(std::visit([](const auto& kind) { return json_of_one(kind); }, sample));
  }
  const OrderedJson json{{"format", kFormat},
                         {"machine", json_of(content.machine)},
                         {"facts", json_of(content.facts)},
                         {"samples_step", content.samples_step},
                         {"samples", std::move(samples)}};
  return json.dump() + "\n";
}

void write_report_data(const std::filesystem::path& path, const ReportContent& content) {
  write_file_atomic(path, report_data_json(content));
}

void parse_report_data(std::string_view bytes, const std::string& where, ReportContent& content) {
  const auto json = parse_json(bytes, where, kMostBytes);
  try {
    require(json.is_object(), "no object");
    require(json.at("format") == kFormat, "another format");
    ReportContent read{.machine = rows_of(json.at("machine")),
                       .facts = rows_of(json.at("facts")),
                       .samples_step = json.at("samples_step").get<int64_t>()};
    const auto& samples = json.at("samples");
    require(samples.is_array() && samples.size() <= kMaxSamples,
            "samples are no list, or too many");
    for (const auto& sample : samples) read.samples.push_back(sample_of(sample));
    require(media_bytes(read.samples) <= kMaxAllMedia, "sounds and pictures are too large");
    content.machine = std::move(read.machine);
    content.facts = std::move(read.facts);
    content.samples = std::move(read.samples);
    content.samples_step = read.samples_step;
  } catch (const std::exception& error) {
    throw Error(ExitCode::kBadData, where + ": not what a report is made of: " + error.what(),
                "remove it; training writes it anew");
  }
}

void read_report_data(const std::filesystem::path& path, ReportContent& content) {
  parse_report_data(read_file(path, kMostBytes), path.string(), content);
}

}  // namespace stretto::report

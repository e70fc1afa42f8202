#include "report/html_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "base/file.h"
#include "base/text.h"
#include "report/chart_math.h"
#include "report/curves.h"
#include "report/heat_map.h"
#include "report/html_text.h"
#include "report/media.h"
#include "report/page.h"
#include "report/report_charts.h"
#include "report/sample_rows.h"
#include "report/utf8.h"

namespace stretto::report {
namespace {

constexpr size_t kMaxTitle = 200, kMaxNote = 600, kMaxConfigBytes = 64 << 10, kMaxValidations = 200;

using Events = std::vector<MetricsEvent>;

// ---- header -----------------------------------------------------------------------------------

std::string elapsed(const Events& events) {
  double seconds = -1;
  for (const MetricsEvent& event : events) seconds = std::max(seconds, event.seconds.value_or(-1));
  return seconds < 0 ? "–" : human_duration(seconds);
}

std::string skipped_note(int64_t count) {
  if (count == 0) return "";
  return counted(count, "update") + " skipped";
}

std::string task_note(const std::string& note) {
  return note.empty() ? "" : "<p class=\"note\">" + escape_html(note, kMaxNote) + "</p>\n";
}

/// The step that ends the run, as far as is known; 0 = unknown. Each update that is skipped moves
/// it. A run of an earlier version may have reached train.max_steps with updates that it skipped.
int64_t last_step_of(const ReportContent& content, const Curves& curves) {
  if (content.max_steps <= 0) return 0;
  const bool reached = !content.events.empty() && content.events.back().event == "end" &&
                       content.events.back().reason.value_or("").starts_with("train.max_steps");
  return reached ? curves.last_step : content.max_steps + curves.skipped;
}

std::string number_tile(const NumberStyle& style, const Curves& curves) {
  const std::string& title = style.tile;
  const NumberCurves& points = curves.of(style);
  const auto best = [&] { return best_text(points.valid, style, curves.best_from); };
  if (style.of_validation) {
    if (points.valid.empty()) return render_tile(title, "–", "not measured yet");
    return render_tile(title, fixed(points.valid.back().y, style.decimals), best());
  }
  const bool has_valid = curves.has_validations();
  const auto& shown = has_valid ? points.valid : points.train;
  const std::string value =
      shown.empty() ? "–" : short_number(has_valid ? shown.back().y : recent(shown));
  return render_tile(title, value, has_valid ? "validation; " + best() : "training");
}

std::string rate_tile(const RateStyle& style, const Curves& curves) {
  const std::string rate =
      curves.rate.empty() ? "–" : with_thousands(std::llround(median(curves.rate)));
  return render_tile(style.short_title(), rate,
                     (style.remark.empty() ? "" : style.remark + ", ") + "median");
}

std::string render_tiles(const ReportContent& content, const Curves& curves) {
  std::string numbers;
  for (const NumberStyle& style : curves.styles) {
    if (!style.tile.empty()) numbers += number_tile(style, curves);
  }
  const int64_t last_step = last_step_of(content, curves);
  return "<dl class=\"tiles card\">" + numbers + rate_tile(content.display.rate, curves) +
         render_tile("Step", with_thousands(curves.last_step),
                     last_step > 0 ? "of " + with_thousands(last_step) : "") +
         render_tile("Elapsed", elapsed(content.events), skipped_note(curves.skipped)) + "</dl>\n" +
         task_note(content.display.note);
}

std::string render_summary(const ReportContent& content, const Curves& curves) {
  std::string bar;
  if (const int64_t last_step = last_step_of(content, curves); last_step > 0) {
    const double share = static_cast<double>(curves.last_step) / static_cast<double>(last_step);
    const std::string percent = fixed(100 * std::clamp(share, 0.0, 1.0), 1);
    bar = "<div class=\"bar\" role=\"progressbar\" aria-valuenow=\"" + percent +
          "\" aria-valuemin=\"0\" aria-valuemax=\"100\" title=\"" + percent +
          "% of the updates\"><i style=\"width:" + percent + "%\"></i></div>\n";
  }
  return bar + render_tiles(content, curves);
}

// ---- samples and tables -----------------------------------------------------------------------

std::string sample_row(const std::string& label, const std::string& text, const char* css = "") {
  return "<dt>" + escape_html(label, kMaxTitle) + "</dt><dd dir=\"auto\"" + css + ">" +
         (text.empty() ? "–" : escape_html(text, kMaxText)) + "</dd>";
}

std::string render_sample(const TextPairSample& sample, const Display& display) {
  const TextPairWords& words = display.text_pair;
  std::string out = "<dl>" + sample_row(words.input, sample.input) +
                    sample_row(words.output, sample.output, " class=\"out\"") +
                    sample_row(words.reference, sample.reference) + "</dl>";
  const std::string attention = render_attention(sample, words.picture);
  return attention.empty() ? out : out + "<div>" + attention + "</div>";
}

std::string render_sample_rows(const SampleRows& rows) {
  std::string out = "<dl>";
  for (size_t i = 0; i < std::min(rows.size(), kMaxRows); ++i) {
    out += sample_row(rows[i].first, rows[i].second);
  }
  return out + "</dl>";
}

std::string render_sample(const RowsSample& sample, const Display&) {
  return render_sample_rows(sample.rows);
}

std::string render_stretch(const MarkedTextSample::Stretch& stretch, size_t most) {
  const std::string text = escape_html(stretch.text, most);
  if (!stretch.is_output && !stretch.is_reference) return text;
  const char* css = !stretch.is_output ? "ref" : stretch.is_reference ? "out ref" : "out";
  return "<mark class=\"" + std::string(css) + "\">" + text + "</mark>";
}

std::string render_sample(const MarkedTextSample& sample, const Display& display) {
  const TextPairWords& words = display.text_pair;
  std::string text;
  size_t left = kMaxText;
  for (size_t i = 0; i < std::min(sample.text.size(), kMaxStretches) && left > 0; ++i) {
    const auto& stretch = sample.text[i];
    text += render_stretch(stretch, left);
    left -= std::min(left, count_code_points(valid_utf8(stretch.text)));
  }
  std::string references;
  for (size_t i = 0; i < std::min(sample.references.size(), kMaxReferences); ++i) {
    references += (references.empty() ? "" : " · ") + sample.references[i];
  }
  const std::string note =
      sample.note.empty() ? "" : " <small>" + escape_html(sample.note, kMaxNote) + "</small>";
  return "<dl class=\"answer\">" + sample_row(words.request, sample.request) + "<dt>" +
         escape_html(words.input, kMaxTitle) + "</dt><dd dir=\"auto\" class=\"text\">" + text +
         "</dd><dt>" + escape_html(words.output, kMaxTitle) +
         "</dt><dd dir=\"auto\" class=\"out\">" +
         (sample.output.empty() ? "–" : escape_html(sample.output, kMaxText)) + note + "</dd>" +
         sample_row(words.reference, references) + "</dl>";
}

// Darker where a larger share of the row lies.
std::string render_count(int64_t count, int64_t of_row, bool on_diagonal) {
  const double share = of_row > 0 ? static_cast<double>(count) / static_cast<double>(of_row) : 0.0;
  const std::string shade =
      count > 0 ? " style=\"background:rgba(var(--cell)," + fixed(0.06 + 0.5 * share, 2) + ")\""
                : "";
  return "<td" + std::string(on_diagonal ? " class=\"own\"" : "") + shade + ">" +
         with_thousands(count) + "</td>";
}

std::string render_sample(const MatrixSample& sample, const Display&) {
  const size_t rows = std::min({sample.rows.size(), sample.counts.size(), kMaxMatrix});
  const size_t columns = std::min(sample.columns.size(), kMaxMatrix);
  std::string out = "<table class=\"matrix\"><caption>" + escape_html(sample.title, kMaxTitle) +
                    "</caption><thead><tr><td>" + escape_html(sample.row_title, kMaxTitle) + " ↓ " +
                    escape_html(sample.column_title, kMaxTitle) + " →</td>";
  for (size_t column = 0; column < columns; ++column) {
    const std::string name = escape_html(sample.columns[column], kMaxNote);
    out += "<th scope=\"col\"><span title=\"" + name + "\">" + name + "</span></th>";
  }
  out += "</tr></thead><tbody>";
  for (size_t row = 0; row < rows; ++row) {
    auto counts = sample.counts[row];
    counts.resize(columns);
    const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    out += "<tr><th scope=\"row\">" + escape_html(sample.rows[row], kMaxNote) + "</th>";
    for (size_t column = 0; column < columns; ++column) {
      out += render_count(counts[column], total, row == column);
    }
    out += "</tr>";
  }
  return out + "</tbody></table>";
}

std::string render_samples(const ReportContent& content) {
  const auto& samples = content.samples;
  if (samples.empty()) return "";
  size_t bytes_left = kMaxAllMedia;
  std::string out = "<section><h2>" + escape_html(content.display.samples, kMaxTitle);
  if (content.samples_step > 0) out += " at step " + with_thousands(content.samples_step);
  out += "</h2>\n";
  for (size_t i = 0; i < std::min(samples.size(), kMaxSamples); ++i) {
    const auto draw = [&](const auto& sample) {
      if constexpr (std::is_same_v<decltype(sample), const MediaSample&>) {
        const MediaSample kept = kept_media(sample, bytes_left);
        return render_media(kept) + (kept.rows.empty() ? "" : render_sample_rows(kept.rows));
      } else {
        return render_sample(sample, content.display);
      }
    };
    out += "<article class=\"sample card\">" + std::visit(draw, samples[i]) + "</article>\n";
  }
  return out + "</section>\n";
}

std::string cell(const std::optional<double>& value, int decimals) {
  if (!value || !std::isfinite(*value)) return "<td>–</td>";
  return "<td>" + (std::abs(*value) < 1e6 ? fixed(*value, decimals) : tick_label(*value)) + "</td>";
}

using Validations = std::vector<const MetricsEvent*>;

/// As training marks `best`, by Display::best_by: the earlier of two equal ones, and never the
/// weights before the first update, nor those of before the step `from` (first_comparable_step()).
/// Null where no validation has that number.
const MetricsEvent* best_of(const Validations& validations, const NumberStyle& by, int64_t from) {
  const auto quality = [&](const MetricsEvent& event) {
    const double value = event.number(by.name).value_or(NAN);
    return by.higher_is_better ? value : -value;
  };
  const MetricsEvent* best = nullptr;
  for (const MetricsEvent* event : validations) {
    if (event->step == 0 || event->step < from || !std::isfinite(quality(*event))) continue;
    if (best == nullptr || quality(*event) > quality(*best)) best = event;
  }
  return best;
}

std::string validation_row(const MetricsEvent& event, const std::vector<NumberStyle>& columns,
                           const std::string& attributes) {
  std::string out = "<tr" + attributes + "><td>" + with_thousands(event.step) + "</td><td>" +
                    with_thousands(event.epoch) + "</td>";
  for (const NumberStyle& style : columns) {
    out += cell(value_of(event, style), style.column_decimals);
  }
  return out + "<td>" + (event.seconds ? human_duration(*event.seconds) : "–") + "</td></tr>";
}

std::string render_validations(const ReportContent& content, const Curves& curves) {
  Validations validations;
  for (const MetricsEvent& event : content.events) {
    if (event.event == "valid") validations.push_back(&event);
  }
  if (validations.empty()) return "";
  std::string out =
      "<section><h2>Validations</h2><div class=\"card table\"><table class=\"list\"><thead><tr>"
      "<th>Step</th><th>Epoch</th>";
  std::vector<NumberStyle> columns;
  for (const NumberStyle& style : curves.styles) {
    if (style.column.empty()) continue;
    columns.push_back(style);
    out += "<th>" + escape_html(style.column, kMaxTitle) + "</th>";
  }
  out += "<th>Elapsed</th></tr></thead><tbody>";
  const NumberStyle by = content.display.style(content.display.best_by);
  const MetricsEvent* best = best_of(validations, by, curves.best_from);
  const std::string title =
      (by.higher_is_better ? "highest " : "lowest ") + escape_html(by.label, kMaxTitle);
  const std::string mark = " class=\"best\" title=\"" + title + "\"";
  // The newest first; the best one stays even when it is old.
  for (size_t i = 0; i < validations.size(); ++i) {
    const MetricsEvent* event = validations[validations.size() - 1 - i];
    if (i >= kMaxValidations && event != best) continue;
    out += validation_row(*event, columns, event == best ? mark : "");
  }
  out += "</tbody></table></div>";
  if (validations.size() > kMaxValidations) {
    out += "<p class=\"note\">The last " + std::to_string(kMaxValidations) + " of " +
           with_thousands(static_cast<int64_t>(validations.size())) +
           "; metrics.jsonl has all of them.</p>";
  }
  return out + "</section>\n";
}

/// What happened on the way, the newest first.
std::string render_notes(const Events& events) {
  std::vector<const MetricsEvent*> notes;
  for (const MetricsEvent& event : events) {
    if (event.note && !event.note->empty()) notes.push_back(&event);
  }
  if (notes.empty()) return "";
  std::string out =
      "<section><h2>What happened</h2><div class=\"card table\"><table class=\"notes\">";
  const size_t shown = std::min(notes.size(), kMaxRows);
  for (size_t i = 0; i < shown; ++i) {
    const MetricsEvent& event = *notes[notes.size() - 1 - i];
    out += "<tr><th scope=\"row\">step " + with_thousands(event.step) + "</th><td>" +
           escape_html(*event.note, kMaxCell) + "</td></tr>";
  }
  out += "</table></div>";
  if (shown < notes.size()) {
    out += "<p class=\"note\">The last " + std::to_string(shown) + " of " +
           with_thousands(static_cast<int64_t>(notes.size())) +
           "; metrics.jsonl has all of them.</p>";
  }
  return out + "</section>\n";
}

std::string render_config(const std::string& toml) {
  if (toml.empty()) return "";
  const bool cut = toml.size() > kMaxConfigBytes;
  return "<section><h2>Configuration</h2><pre class=\"card\">" +
         highlight_toml(std::string_view(toml).substr(0, kMaxConfigBytes)) + "</pre>" +
         (cut ? "<p class=\"note\">The beginning; config.toml has all of it.</p>" : "") +
         "</section>\n";
}

std::string render_tables(const ReportContent& content) {
  const std::string facts = render_rows("Model and data", content.facts);
  const std::string machine = render_rows("Machine", content.machine);
  if (facts.empty() || machine.empty()) return facts + machine;
  return "<div class=\"pair\">" + facts + machine + "</div>\n";
}

}  // namespace

std::string render_html(const ReportContent& content) {
  const Curves curves(content.events, content.display);
  const Page page{.title = content.title,
                  .kind = "Stretto",
                  .over = "Stretto training report",
                  .status = content.status,
                  .footer =
                      "Written by Stretto into the run folder. Everything on this page is in "
                      "this one file; the numbers behind the curves are in metrics.jsonl "
                      "beside it.",
                  .refresh_seconds = content.refresh_seconds,
                  .plays_sound = has_sound(content.samples)};
  return render_page(page, render_summary(content, curves),
                     render_charts(curves, content.display) + render_notes(content.events) +
                         render_samples(content) + render_tables(content) +
                         render_validations(content, curves) + render_config(content.config_toml));
}

void write_html_report(const std::filesystem::path& path, const ReportContent& content) {
  write_file_atomic(path, render_html(content));
}

}  // namespace stretto::report

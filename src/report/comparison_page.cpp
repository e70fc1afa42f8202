#include "report/comparison_page.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/batch_figure.h"
#include "report/comparison_charts.h"
#include "report/html_text.h"
#include "report/page.h"

namespace stretto::report {
namespace {

constexpr size_t kMostShown = 200, kLongestValue = 120;
constexpr size_t kMostDifferences = 500;  // runs of two families have some hundreds

constexpr const char* kComparisonStyle =
    ":root{--ink4:#8a3fc4;--ink5:#c02b5b;--ink6:#0b7f96;--ink7:#8d6a08;--ink8:#5f6470}"
    "@media(prefers-color-scheme:dark){:root{"
    "--ink4:#c69bf2;--ink5:#ff86a8;--ink6:#5fcbe0;--ink7:#dcbc55;--ink8:#a9aebb}}"
    ".ink4{--c:var(--ink4)}.ink5{--c:var(--ink5)}.ink6{--c:var(--ink6)}.ink7{--c:var(--ink7)}"
    ".ink8{--c:var(--ink8)}"
    ".key i{flex:none}.line.dash1{stroke-dasharray:7 4}.line.dash2{stroke-dasharray:2 4}"
    ".key i.dash1{background:linear-gradient(90deg,var(--c) 60%,transparent 0)}"
    ".key i.dash2{background:linear-gradient(90deg,var(--c) 25%,transparent 0 45%,var(--c) 0 "
    "70%,transparent 0)}"
    ".views{margin-top:30px}.views>.charts{display:none}"
    ".views>input{position:absolute;opacity:0}"
    ".views>label{display:inline-block;padding:4px 14px;margin:0 6px 0 0;font-size:13.5px;"
    "border:1px solid var(--edge);border-radius:99px;background:var(--card);color:var(--soft);"
    "cursor:pointer}"
    ".views>input:checked+label{color:var(--ink1);border-color:currentColor;font-weight:600}"
    ".views>input:focus-visible+label{outline:2px solid var(--ink1)}"
    ".list .text,.list tbody th{text-align:left}.list tbody th{width:auto;min-width:110px}"
    ".list .text{white-space:normal;overflow-wrap:normal}.list .word{white-space:nowrap}"
    ".list th .key{font-size:14px;color:var(--ink);overflow-wrap:anywhere;white-space:normal}"
    ".list .best.best{color:var(--good);font-weight:600}"
    ".list small{display:block;font-weight:400;color:var(--faint)}"
    ".keys td{max-width:260px;white-space:normal!important;text-align:left!important}"
    ".table.whole{max-height:none}";

std::string shown(const std::string& words, size_t most = kMostShown) {
  return escape_html(words, most);
}

std::string shown_or_dash(const std::string& words, size_t most = kMostShown) {
  return words.empty() ? "–" : shown(words, most);
}

std::string key_of_run(const Comparison& comparison, size_t run) {
  const ComparedRun& of = comparison.runs[run];
  const std::string colour =
      has_curves(comparison) ? "<i class=\"" + class_of_run(run) + "\"></i>" : "";
  return "<span class=\"key\" title=\"" + shown(of.folder) + "\">" + colour + shown(of.name) +
         "</span>";
}

// The rate, and below it what slows it down where that is no small part.
std::string rate_cell(const ComparedRun& run, const Curves& curves) {
  if (curves.rate.empty()) return "–";
  constexpr double kSmall = 0.01;
  const double waited = data_wait_share(run).value_or(0);
  return with_thousands(std::llround(median(curves.rate))) + "<small>" +
         shown(run.display.rate.unit) + "/s</small>" +
         (waited < kSmall ? "" : "<small>" + percent_text(waited) + " waiting for data</small>");
}

std::string render_runs(const Comparison& comparison, const std::vector<Curves>& curves) {
  std::string out =
      "<section><h2>Runs</h2><div class=\"card table whole\"><table class=\"list\"><thead><tr>"
      "<th class=\"text\">Run</th><th class=\"text\">Task</th><th class=\"text\">State</th>"
      "<th>Step</th><th>Elapsed</th><th>Speed</th><th class=\"text\">Machine</th></tr></thead>"
      "<tbody>";
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    const ComparedRun& run = comparison.runs[i];
    const auto seconds = trained_seconds(run);
    out += "<tr><th scope=\"row\">" + key_of_run(comparison, i) + "</th><td class=\"text word\">" +
           shown_or_dash(run.task) + "</td><td class=\"text\">" + shown_or_dash(run.status) +
           "</td><td>" + with_thousands(curves[i].last_step) + "</td><td>" +
           (seconds ? human_duration(*seconds) : "–") + "</td><td>" + rate_cell(run, curves[i]) +
           "</td><td class=\"text\">" + shown_or_dash(machine_text(run)) + "</td></tr>";
  }
  return out +
         "</tbody></table></div><p class=\"note\">Speed: median of the logged updates, "
         "and the share of their time for which training waited for data, if it is 1 % or more. "
         "Elapsed: time of training, all sessions.</p></section>\n";
}

std::string render_left_out(const Comparison& comparison) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const LeftOutRun& run : comparison.left_out) rows.emplace_back(run.folder, run.why);
  return render_rows("Left out", rows);
}

// "updates", "time (minutes)"
std::string name_of_view(const ComparedCharts& view) {
  const std::string unit = view.charts.empty() ? "" : view.charts.front().x_unit;
  return unit.empty() || unit == view.over ? view.over : view.over + " (" + unit + ")";
}

// Radio buttons in front of what they show: style rules show the charts of the one that is chosen.
std::string render_views(const std::vector<ComparedCharts>& views) {
  std::string buttons, charts;
  for (size_t i = 0; i < views.size(); ++i) {
    const std::string number = std::to_string(i), id = "over" + number;
    buttons += "<input type=\"radio\" name=\"over\" id=\"" + id + "\"" +
               (i == 0 ? " checked=\"checked\"" : "") + "/><label for=\"" + id + "\">over " +
               shown(name_of_view(views[i])) + "</label>\n";
    charts += "<div class=\"charts view" + number + "\">\n";
    for (const Chart& chart : views[i].charts) charts += render_chart(chart);
    charts += "</div>\n";
  }
  return "<section class=\"views\" aria-label=\"curves\">\n" + buttons + charts + "</section>\n";
}

std::string view_rules(const std::vector<ComparedCharts>& views) {
  std::string rules = kComparisonStyle;
  for (size_t i = 0; i < views.size(); ++i) {
    const std::string number = std::to_string(i);
    rules += "#over" + number + ":checked~.view" + number + "{display:grid}";
  }
  return rules;
}

std::string best_cell(const BestNumber& number, size_t run) {
  const auto& best = number.best[run];
  if (!best) return "<td>–</td>";
  return std::string(number.winners[run] ? "<td class=\"best\">" : "<td>") +
         fixed(best->y, number.style.column_decimals) + "<small>" + at_step(*best) +
         "</small></td>";
}

std::string render_best_numbers(const Comparison& comparison, const std::vector<Curves>& curves) {
  const auto numbers = best_numbers(comparison.runs, curves);
  if (numbers.empty()) return "";
  std::string out =
      "<section><h2>Best of all validations</h2><div class=\"card table whole\"><table "
      "class=\"list\"><thead><tr><th class=\"text\">Run</th>";
  for (const BestNumber& number : numbers) out += "<th>" + shown(number.title) + "</th>";
  out += "</tr></thead><tbody>";
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    out += "<tr><th scope=\"row\">" + key_of_run(comparison, i) + "</th>";
    for (const BestNumber& number : numbers) out += best_cell(number, i);
    out += "</tr>";
  }
  return out +
         "</tbody></table></div><p class=\"note\">Each number at its own best validation, but that "
         "before the first update.</p></section>\n";
}

std::string render_differences(const Comparison& comparison) {
  const auto differences = key_differences(comparison.runs);
  std::string out = "<section><h2>Keys that differ</h2>";
  if (differences.empty()) return out + "<p class=\"note\">None.</p></section>\n";
  out +=
      "<div class=\"card table whole\"><table class=\"list keys\"><thead><tr><th "
      "class=\"text\">Key</th>";
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    out += "<th class=\"text\">" + key_of_run(comparison, i) + "</th>";
  }
  out += "</tr></thead><tbody>";
  const size_t count = std::min(differences.size(), kMostDifferences);
  for (size_t i = 0; i < count; ++i) {
    out += "<tr><th scope=\"row\">" + shown(differences[i].key) + "</th>";
    for (const auto& value : differences[i].values) {
      out += "<td>" + (value ? shown(*value, kLongestValue) : "–") + "</td>";
    }
    out += "</tr>";
  }
  out += "</tbody></table></div>";
  if (count < differences.size()) {
    out += "<p class=\"note\">The first " + std::to_string(count) + " of " +
           with_thousands(static_cast<int64_t>(differences.size())) + ".</p>";
  }
  return out + "</section>\n";
}

std::string names_of_runs(const Comparison& comparison) {
  if (!has_curves(comparison)) return counted(std::ssize(comparison.runs), "run");
  std::vector<std::string> names;
  for (const ComparedRun& run : comparison.runs) names.push_back(run.name);
  return join(names, ", ");
}

}  // namespace

std::string render_comparison(const Comparison& comparison) {
  const std::vector<Curves> curves = curves_of(comparison.runs);
  const auto views = compared_charts(comparison, curves);
  const auto figure = batch_figure(comparison, curves);
  const Page page{.title = names_of_runs(comparison),
                  .kind = "Stretto comparison",
                  .over = "Stretto comparison of runs",
                  .footer =
                      "Written by Stretto. Everything on this page is in this one file; the "
                      "numbers behind the curves are in metrics.jsonl of each run.",
                  .style = view_rules(views)};
  return render_page(page, "",
                     render_left_out(comparison) + render_runs(comparison, curves) +
                         (figure ? render_batch_figure(*figure) : "") +
                         (views.empty() ? "" : render_views(views)) +
                         render_best_numbers(comparison, curves) + render_differences(comparison));
}

}  // namespace stretto::report

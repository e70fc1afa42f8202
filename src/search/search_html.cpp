#include "search/search_html.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/html_text.h"
#include "report/page.h"
#include "report/ranked_lines.h"
#include "search/importance.h"
#include "search/search_charts.h"
#include "search/search_files.h"

namespace stretto::search {
namespace {

using report::escape_html;
using report::render_tile;

constexpr size_t kMostText = 400;
constexpr size_t kMostRows = 2000;

constexpr const char* kStyle =
    ".wide{grid-template-columns:minmax(0,1fr)}"
    ".share{display:block;height:8px;border-radius:4px;background:var(--ink1)}"
    ".list a,.head a,p a{color:var(--ink1)}.list .text{text-align:left;white-space:normal}";

std::string text(const std::string& words) {
  return escape_html(words, kMostText);
}

std::string number(std::optional<double> value, int decimals) {
  return value ? fixed(*value, decimals) : "–";
}

// "of 16", or of a whole grid "of 12 points, 4 refused"
std::string budget_remark(const SearchPlan& plan) {
  const auto refused = static_cast<int64_t>(plan.refused.count);
  return "of " +
         (plan.budget() == kAllPoints ? plan.budget_text() : std::to_string(plan.budget())) +
         (refused > 0 ? ", " + with_thousands(refused) + " refused" : "");
}

// Updates that were trained, and those of as many trials to their ends.
std::string tiles(const SearchState& state) {
  const auto& plan = state.plan();
  int64_t trained = 0, ended = 0;
  for (const auto& trial : state.trials()) {
    trained += trial.updates();
    ended += trial.reports.empty() ? 0 : 1;
  }
  const auto all = static_cast<double>(ended * plan.max_steps);
  const auto best = state.best();
  return "<dl class=\"tiles card\">" +
         render_tile("Best " + plan.metric,
                     number(best ? state.trial(*best).value() : std::nullopt, 4),
                     best ? "trial " + std::to_string(*best) : "no result yet") +
         render_tile("Trials", std::to_string(state.trials().size()), budget_remark(plan)) +
         render_tile("Training now", std::to_string(state.running().size()),
                     plan.options.method.name()) +
         render_tile(
             "Updates", with_thousands(trained),
             all > 0 ? percent_text(static_cast<double>(trained) / all) + " of all to their ends"
                     : "none yet") +
         render_tile("A whole trial", with_thousands(plan.max_steps), "updates") +
         render_tile("Searched", human_duration(state.clock()), "all sessions") + "</dl>\n";
}

std::string best_section(const SearchState& state) {
  const auto best = state.best();
  if (!best) return "";
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& word : state.plan().space.overrides(state.trial(*best).point)) {
    const size_t equals = word.find('=');
    rows.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return report::render_rows("The best", rows,
                             "<p class=\"note\">best.toml is its whole configuration; its <a "
                             "href=\"trials/" +
                                 std::to_string(*best) + "/report.html\">report</a>.</p>");
}

std::string importance_section(const SearchState& state) {
  std::string out =
      "<section><h2>Which key mattered</h2><div class=\"card table\"><table class=\"list\"><thead>"
      "<tr><th class=\"text\">Key</th><th>Trials</th><th>Variance share</th><th "
      "class=\"text\"></th><th>Rank correlation</th></tr></thead><tbody>";
  for (const auto& one : importances(state)) {
    const auto share = one.variance_share;
    out += "<tr><td class=\"text\">" + text(state.plan().space.parameters[one.parameter].key) +
           "</td><td>" + std::to_string(one.trials) + "</td><td>" + number(share, 2) +
           "</td><td class=\"text\"><span class=\"share\" style=\"width:" +
           fixed(120 * share.value_or(0), 0) + "px\"></span></td><td>" +
           number(one.rank_correlation, 2) + "</td></tr>";
  }
  return out +
         "</tbody></table></div><p class=\"note\">Of ranks at each trial's first report, within "
         "its "
         "bracket. Variance share: epsilon squared of a one-way analysis of variance over values, "
         "or over quarters of an interval; what only a pair of keys explains is in neither. Rank "
         "correlation: Spearman's; below 0, greater values are better. With few trials both are "
         "rough.</p></section>\n";
}

std::string rungs_section(const SearchState& state) {
  const auto rungs = state.scheduler().rungs();
  if (rungs.size() < 2) return "";
  const bool more = state.plan().higher_is_better;
  std::string out =
      "<section><h2>Rungs</h2><div class=\"card table\"><table class=\"list\"><thead><tr>"
      "<th>Bracket</th><th>Updates</th><th>Results</th><th>May go on</th><th>Went on</th>"
      "<th>Cut-off</th></tr></thead><tbody>";
  for (const auto& rung : rungs) {
    const auto went_on = std::count_if(rung.competitors.begin(), rung.competitors.end(),
                                       [](const Competitor& one) { return one.went_on; });
    const auto cut_off = rung.cut_off && more ? std::optional(-*rung.cut_off) : rung.cut_off;
    out += "<tr><td>" + std::to_string(rung.bracket) + "</td><td>" + with_thousands(rung.until) +
           "</td><td>" + std::to_string(rung.competitors.size()) + "</td><td>" +
           (rung.is_last ? "–" : std::to_string(rung.quota)) + "</td><td>" +
           (rung.is_last ? "–" : std::to_string(went_on)) + "</td><td>" + number(cut_off, 4) +
           "</td></tr>";
  }
  return out +
         "</tbody></table></div><p class=\"note\">`stretto search explain` names the "
         "competitors of each rung.</p></section>\n";
}

std::string trial_row(const SearchState& state, const Trial& trial) {
  const TrialState standing = state.state_of(trial.id);
  const std::string folder = "trials/" + std::to_string(trial.id);
  const bool failed = standing == TrialState::kFailed;
  return std::string(state.best() == trial.id ? "<tr class=\"best\">" : "<tr>") + "<td><a href=\"" +
         folder + (failed ? "/output.txt" : "/report.html") + "\">" + std::to_string(trial.id) +
         "</a></td><td>" + name_of(standing) + "</td><td>" + with_thousands(trial.updates()) +
         "</td><td>" + number(trial.value(), 4) + "</td><td class=\"text\">" +
         text(state.plan().space.text(trial.point)) + (failed ? "<br/>" + text(trial.why) : "") +
         "</td></tr>";
}

std::string trials_section(const SearchState& state) {
  std::vector<TrialId> order;
  for (const auto& trial : state.trials()) order.push_back(trial.id);
  std::sort(order.begin(), order.end(),
            [&](TrialId a, TrialId b) { return state.is_better(a, b); });
  if (order.size() > kMostRows) order.resize(kMostRows);
  std::string out =
      "<section><h2>Trials</h2><div class=\"card table\"><table class=\"list\"><thead><tr>"
      "<th>Trial</th><th>State</th><th>Updates</th><th>" +
      text(state.plan().metric) + "</th><th class=\"text\">Point</th></tr></thead><tbody>";
  for (const TrialId id : order) out += trial_row(state, state.trial(id));
  return out + "</tbody></table></div></section>\n";
}

}  // namespace

std::string render_search_html(const SearchPage& page) {
  const report::Page around{
      .title = page.title,
      .kind = "Stretto search",
      .over = "Hyperparameter search",
      .status = page.status,
      .footer =
          "Written by Stretto into the folder of the search. Everything on this page but the "
          "reports of trials is in this one file; trials.jsonl has the numbers.",
      .style = std::string(report::kRankedLinesStyle) + kStyle,
      .refresh_seconds = page.refresh_seconds};
  return report::render_page(
      around, tiles(page.state),
      "<div class=\"charts wide\">" + render_trial_curves(page.state, page.curves) +
          render_points(page.state) + "</div>" + best_section(page.state) +
          importance_section(page.state) + rungs_section(page.state) + trials_section(page.state));
}

}  // namespace stretto::search

#include "search/space_check.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "config/load.h"
#include "experiment/experiment_schema.h"
#include "search/space_options.h"

namespace stretto::search {
namespace {

// Values of one parameter that are read to see whether they fit.
constexpr size_t kMostProbes = 64;

/// A value that is read to see whether it fits.
struct ProbedValue {
  std::string name;  ///< of the block's key that states it: "values", "min", "max"
  std::string value;
};

std::vector<ProbedValue> probes_of(const Parameter& parameter) {
  if (!parameter.is_discrete()) {
    return {{"min", parameter.at(0)}, {"max", parameter.at(0x1.fffffffffffffp-1)}};
  }
  std::vector<ProbedValue> probes;
  for (const auto& value : parameter.values) {
    if (probes.size() == kMostProbes) break;
    probes.push_back({"values", value});
  }
  return probes;
}

// What is wrong with a value, and the value itself where the message leaves it out.
std::string with_value(const std::string& what, const std::string& value) {
  return what.find(", got ") != std::string::npos ? what : "`" + printable(value) + "`: " + what;
}

// The values above `number` that its conditions need.
void fulfil(const Space& space, size_t number, Point& point) {
  for (const auto& condition : space.parameters[number].when) {
    point[condition.parameter] = condition.values.front();
    fulfil(space, condition.parameter, point);
  }
}

/// Reads one parameter's values as overrides of the configuration.
class Probe {
 public:
  Probe(const SearchPlan& plan, size_t number, const config::Origins& origins,
        std::vector<config::Problem>& problems)
      : plan_(plan), number_(number), origins_(origins), problems_(problems) {}

  void run() {
    for (const auto& probe : probes_of(parameter())) read(probe);
  }

 private:
  const Parameter& parameter() const { return plan_.space.parameters[number_]; }

  void read(const ProbedValue& probe) {
    Point point(plan_.space.parameters.size());
    fulfil(plan_.space, number_, point);
    point[number_] = probe.value;
    const auto words = overrides_of(plan_, point);
    // The override is the last: later parameters have none.
    const int source = config::Order::kCommandLine + static_cast<int>(words.size()) - 1;
    experiment::Experiment options, fallback;
    std::vector<config::Problem> found;
    config::load_file(plan_.options.search.config, words, experiment::experiment_schema(options),
                      experiment::experiment_schema(fallback), found);
    const auto schema = experiment::experiment_schema(options);  // with the parts that were chosen
    for (const auto& problem : found) {
      if (problem.order.source != source) continue;
      if (schema.find(problem.key) == nullptr) {
        note("key", problem.what, problem.hint);
      } else {
        note(probe.name, with_value(problem.what, probe.value), problem.hint);
      }
    }
    if (found.empty()) check_type(schema);
  }

  // An interval's bounds may be whole numbers while what lies between is none.
  void check_type(const config::Schema& schema) {
    const auto* key = schema.find(parameter().key);
    const auto kind = parameter().kind;
    const bool fractions =
        (kind == Parameter::Kind::kDouble || kind == Parameter::Kind::kLog) && !parameter().integer;
    if (key == nullptr || !fractions || !std::holds_alternative<int64_t*>(key->value)) return;
    note("name", "`" + key->path + "` takes whole numbers",
         kind == Parameter::Kind::kLog ? "add integer = true" : "name = \"int\" draws them");
  }

  // Where several values of `name` are wrong in the same way, notes the first.
  void note(const std::string& name, const std::string& what, const std::string& hint) {
    const std::string key = space_key(number_, name);
    if (!told_.insert(key + ": " + what.substr(0, what.find(", got "))).second) return;
    problems_.push_back({origins_.of(key), what, hint, key, origins_.order_of(key)});
  }

  const SearchPlan& plan_;
  size_t number_;
  const config::Origins& origins_;
  std::vector<config::Problem>& problems_;
  std::set<std::string> told_;
};

}  // namespace

void check_space(const SearchPlan& plan, const config::Origins& origins,
                 std::vector<config::Problem>& problems) {
  for (size_t i = 0; i < plan.space.parameters.size(); ++i) {
    Probe(plan, i, origins, problems).run();
  }
}

void require_sound_point(const SearchPlan& plan) {
  std::optional<Error> refusal;
  const auto choice = plan.sampler().next({}, 0, [&](const Point& point) {
    try {
      experiment_of(plan, point);
      return true;
    } catch (const Error& error) {
      if (error.code() != ExitCode::kUsage) throw;
      if (!refusal) refusal = error;
      return false;
    }
  });
  if (choice) return;
  throw Error(ExitCode::kUsage,
              "the space has no points: none of those that were looked at makes a sound "
              "configuration. Of the first, this is wrong:\n" +
                  (refusal ? refusal->message() : "it is not in the space"),
              "take other values, or give `when` to what does not go together");
}

RefusedPoints refused_of_grid(const SearchPlan& plan) {
  RefusedPoints refused;
  const Grid grid(plan.space);
  for (auto point = grid.first(); point && refused.looked_at < SearchPlan::kMostLookedAt;
       point = grid.next(*point)) {
    ++refused.looked_at;
    const std::string why = refusal_of(plan, *point);
    if (!why.empty()) refused.add(plan.space.text(*point), why);
  }
  return refused;
}

std::string refusal_of(const SearchPlan& plan, const Point& point) {
  try {
    experiment_of(plan, point);
    return "";
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;
    // The override came from the search point, not from the command line; say so.
    constexpr std::string_view kCommandLine = "command line, ";
    const std::string what = error.what();
    const size_t begin = what.starts_with(kCommandLine) ? kCommandLine.size() : 0;
    return what.substr(begin, what.find('\n') - begin);
  }
}

}  // namespace stretto::search

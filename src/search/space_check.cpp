#include "search/space_check.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "config/load.h"
#include "experiment/experiment_schema.h"
#include "search/build_space.h"

namespace stretto::search {
namespace {

// Values of one parameter that are read to see whether they fit.
constexpr size_t kMostProbes = 64;

std::vector<std::string> probes_of(const Parameter& parameter) {
  if (!parameter.is_discrete()) return {parameter.at(0), parameter.at(0x1.fffffffffffffp-1)};
  auto values = parameter.values;
  if (values.size() > kMostProbes) values.resize(kMostProbes);
  return values;
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
    for (const auto& value : probes_of(parameter())) read(value);
  }

 private:
  const Parameter& parameter() const { return plan_.space.parameters[number_]; }

  void read(const std::string& value) {
    Point point(plan_.space.parameters.size());
    fulfil(plan_.space, number_, point);
    point[number_] = value;
    const auto words = overrides_of(plan_, point);
    // The override is the last but for those of later parameters, of which there are none.
    const int source = config::Order::kCommandLine + static_cast<int>(words.size()) - 1;
    experiment::Experiment options, fallback;
    std::vector<config::Problem> found;
    config::load_file(plan_.options.search.config, words, experiment::experiment_schema(options),
                      experiment::experiment_schema(fallback), found);
    for (const auto& problem : found) {
      if (problem.order.source == source) note(problem.what, problem.hint);
    }
    if (found.empty()) check_type(experiment::experiment_schema(options));
  }

  // An interval's bounds may be whole numbers while what lies between is none.
  void check_type(const config::Schema& schema) {
    const auto* key = schema.find(parameter().key);
    const auto kind = parameter().kind;
    const bool fractions =
        (kind == Parameter::Kind::kDouble || kind == Parameter::Kind::kLog) && !parameter().integer;
    if (key == nullptr || !fractions || !std::holds_alternative<int64_t*>(key->value)) return;
    note("`" + key->path + "` takes whole numbers",
         kind == Parameter::Kind::kLog ? "add integer = true" : "name = \"int\" draws them");
  }

  // Of several values that are wrong in the same way the first.
  void note(const std::string& what, const std::string& hint) {
    if (!told_.insert(what.substr(0, what.find(", got"))).second) return;
    const std::string key = space_key(number_, "key");
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

void require_a_point(const SearchPlan& plan) {
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

bool is_sound(const SearchPlan& plan, const Point& point) {
  return refusal_of(plan, point).empty();
}

std::string refusal_of(const SearchPlan& plan, const Point& point) {
  try {
    experiment_of(plan, point);
    return "";
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;
    const std::string what = error.what();
    return what.substr(0, what.find('\n'));
  }
}

}  // namespace stretto::search

#include "tasks/registry.h"

#include "base/error.h"
#include "base/text.h"
#include "tasks/masked_lm/masked_lm_family.h"
#include "tasks/question_answering/question_answering_family.h"
#include "tasks/text_classification/text_classification_family.h"
#include "tasks/translation/translation_family.h"

namespace stretto::tasks {
namespace {

struct NamedFamily {
  const char* name;
  const Family& (*family)();
};

constexpr NamedFamily kFamilies[] = {
    {"translation", &translation_family},
    {"masked_lm", &masked_lm_family},
    {"question_answering", &question_answering_family},
    {"text_classification", &text_classification_family},
};

}  // namespace

const Family& family_of(const experiment::Experiment& experiment) {
  std::vector<std::string> names;
  for (const auto& [name, family] : kFamilies) {
    if (experiment.task.name() == name) return family();
    names.emplace_back(name);
  }
  throw Error(ExitCode::kUsage, "task.name: no task `" + printable(experiment.task.name()) + "`",
              "there are: " + join(names, ", "));
}

}  // namespace stretto::tasks

#include "families/image_classification/engine/image_classification_family.h"
#include "families/language_model/engine/language_model_family.h"
#include "families/masked_lm/engine/masked_lm_family.h"
#include "families/question_answering/engine/question_answering_family.h"
#include "families/speech_recognition/engine/speech_recognition_family.h"
#include "families/speech_synthesis/engine/speech_synthesis_family.h"
#include "families/text_classification/engine/text_classification_family.h"
#include "families/translation/engine/translation_family.h"
#include "tasks/registry.h"

namespace stretto::tasks {
namespace {

std::vector<NamedFamily>& listed() {
  static std::vector<NamedFamily> families{
      {"translation", &translation_family},
      {"masked_lm", &masked_lm_family},
      {"question_answering", &question_answering_family},
      {"text_classification", &text_classification_family},
      {"language_model", &language_model_family},
      {"image_classification", &image_classification_family},
      {"speech_recognition", &speech_recognition_family},
      {"speech_synthesis", &speech_synthesis_family},
  };
  return families;
}

}  // namespace

const std::vector<NamedFamily>& families() {
  return listed();
}

void add_family(NamedFamily family) {
  listed().push_back(family);
}

}  // namespace stretto::tasks

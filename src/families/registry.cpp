#include <utility>

#include "experiment/family_spec.h"
#include "families/image_classification/image_classification_spec.h"
#include "families/language_model/language_model_spec.h"
#include "families/masked_lm/masked_lm_spec.h"
#include "families/question_answering/question_answering_spec.h"
#include "families/speech_recognition/speech_recognition_spec.h"
#include "families/speech_synthesis/speech_synthesis_spec.h"
#include "families/text_classification/text_classification_spec.h"
#include "families/translation/translation_spec.h"

namespace stretto::experiment {
namespace {

std::vector<FamilySpec>& listed() {
  static std::vector<FamilySpec> families{
      // clang-format off
      translation_spec(),
      masked_lm_spec(),
      question_answering_spec(),
      text_classification_spec(),
      language_model_spec(),
      image_classification_spec(),
      speech_recognition_spec(),
      speech_synthesis_spec(),
      // clang-format on
  };
  return families;
}

}  // namespace

const std::vector<FamilySpec>& families() {
  return listed();
}

void add_family(FamilySpec family) {
  listed().push_back(std::move(family));
}

}  // namespace stretto::experiment

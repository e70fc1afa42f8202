#include "families/question_answering/question_answering_folders.h"

#include <algorithm>
#include <utility>

#include "families/question_answering/question_answering_options.h"
#include "families/text/folders/text_folders.h"
#include "interchange/described_experiment.h"

namespace stretto::interchange {
namespace {

constexpr int64_t kMostSpecialTokens = 4;  // around a question and its paragraph

class QuestionAnsweringFolders final : public TextFolders {
 public:
  Head head() const override { return Head::kSpans; }
  // Windows overlap by half where a paragraph has little room.
  experiment::Experiment experiment_of(const ModelDescription& description,
                                       const FolderTexts& texts) const override {
    auto sections = sections_of_folder<experiment::QuestionAnsweringOptions>(description, texts);
    auto& data = sections.data;
    data.max_question_tokens = std::min(data.max_question_tokens, data.max_text_tokens / 4);
    const int64_t room = data.max_text_tokens - data.max_question_tokens - kMostSpecialTokens;
    data.stride = std::clamp<int64_t>(data.stride, 1, std::max<int64_t>(room / 2, 1));
    return described_experiment(std::move(sections));
  }
};

}  // namespace

const ModelFolders& question_answering_folders() {
  static const QuestionAnsweringFolders folders;
  return folders;
}

}  // namespace stretto::interchange

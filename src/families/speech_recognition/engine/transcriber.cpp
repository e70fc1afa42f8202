#include "families/speech_recognition/engine/transcriber.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "decoding/search.h"
#include "families/speech_recognition/engine/joint_steps.h"
#include "models/heads/label.h"
#include "text/byte_bpe.h"
#include "text/target_text.h"

namespace stretto::tasks {
namespace {

using experiment::SpeechRecognitionOptions;

// What spells a word of a lexicon, or of a language model, in tokens; nothing where one is unknown.
// Throws Error(kUsage) for byte_bpe, whose words are others at the beginning of a text.
text::Speller speller(const text::TargetOptions& options,
                      std::shared_ptr<const text::Tokenizer> tokenizer) {
  auto rules = std::make_shared<const text::TargetText>(options);
  const bool has_two_spellings = options.type == "byte_bpe";
  return [rules, has_two_spellings, tokenizer = std::move(tokenizer)](std::string_view word) {
    if (has_two_spellings) {
      throw Error(ExitCode::kUsage,
                  "decode.lexicon, decode.lexicon_from_lm: with tokenizer.type = \"byte_bpe\" `" +
                      printable(word, 60) +
                      "` has two spellings, with a space in front of it and without",
                  "write the labels behind each word of decode.lexicon, a line for each spelling: "
                  "`two \u0120two` and `two two`");
    }
    std::vector<int64_t> ids;
    tokenizer->encode(rules->target(word), ids);
    const int64_t unknown = tokenizer->specials().unk;
    if (std::ranges::find(ids, unknown) != ids.end()) ids.clear();
    return std::vector<int32_t>(ids.begin(), ids.end());
  };
}

std::vector<ctc::CtcWord> words_without_times(const std::string& text) {
  std::vector<ctc::CtcWord> words;
  for (const std::string& word : split_words(text)) words.push_back({.text = word});
  return words;
}

decoding::DecodeOptions attention_search(const experiment::SpeechDecodeOptions& own) {
  decoding::DecodeOptions options;
  options.method = "beam";
  options.beam_size = own.method == "beam" ? own.beam_size : 1;
  options.nbest = std::min(own.nbest, options.beam_size);
  options.length_penalty_type = own.length_penalty > 0 ? "fairseq" : "none";
  options.length_penalty = own.length_penalty;
  // No text has more tokens than rows, but of sounds of a few rows.
  options.max_len_a = 1;
  options.max_len_b = 10;
  return options;
}

std::vector<int64_t> offsets_of(const nn::PackedRows& rows) {
  const at::Tensor values = rows.offsets.values.to(at::kCPU, at::kLong).contiguous();
  return {values.const_data_ptr<int64_t>(), values.const_data_ptr<int64_t>() + values.numel()};
}

// fp32 [M, L + 1] on the CPU, dense.
at::Tensor mean_log_probs(const std::vector<at::Tensor>& scores) {
  std::vector<at::Tensor> log_probs;
  for (const at::Tensor& one : scores) log_probs.push_back(one.to(at::kFloat).log_softmax(1));
  if (log_probs.size() == 1) return log_probs.front().to(at::kCPU).contiguous();
  const auto count = static_cast<double>(log_probs.size());
  return at::stack(log_probs).logsumexp(0).sub(std::log(count)).to(at::kCPU).contiguous();
}

// Hot words as texts are written, by tokenizer.normalise; those of a lexicon are as it has them.
ctc::CtcOptions search_options(const SpeechRecognitionOptions& own) {
  ctc::CtcOptions options = own.decode;
  if (own.decode.reads_with_lexicon()) return options;
  const text::TargetText rules(own.tokenizer);
  for (std::string& phrase : options.hot_words) phrase = rules.normalised(phrase);
  return options;
}

// Throws Error(kUsage) where two models would score the same labels.
const experiment::SpeechDecodeOptions& with_one_language_model(
    const experiment::SpeechDecodeOptions& own) {
  if (own.lm.empty() || own.lm_run.empty()) return own;
  throw Error(ExitCode::kUsage, "decode.lm and decode.lm_run: two language models",
              "leave one of them out");
}

// Words of a lexicon are parted by the label of this name, if there is one.
void separate_by(const std::string& name, ctc::CtcLabels& labels) {
  const auto found = std::ranges::find(labels.names, name);
  if (name.empty() || found == labels.names.end()) return;
  labels.separator = found - labels.names.begin();
  labels.texts[static_cast<size_t>(labels.separator)] = " ";
  labels.begins_word[static_cast<size_t>(labels.separator)] = false;
}

}  // namespace

ctc::CtcLabels ctc_labels_of(const text::Tokenizer& tokenizer,
                             const SpeechRecognitionOptions& own) {
  const std::string& type = own.tokenizer.type;
  std::vector<std::string> names;
  for (int64_t id = 0; id < tokenizer.size(); ++id) names.push_back(tokenizer.piece(id));
  ctc::CtcLabels labels = ctc::labels_by_name(std::move(names));
  if (type != "word" && type != "phonemes" && type != "byte_bpe") return labels;
  const auto specials = tokenizer.specials();
  for (int64_t id = 0; id < tokenizer.size(); ++id) {
    const auto at = static_cast<size_t>(id);
    const bool is_special = id == specials.pad || id == specials.unk || id == specials.bos ||
                            id == specials.eos || id == specials.mask;
    if (is_special) {
      labels.texts[at].clear();
      labels.begins_word[at] = false;
    } else if (type == "byte_bpe") {
      // A piece may be a part of a character.
      std::string bytes = text::bytes_of_piece(labels.names[at]).value_or(labels.names[at]);
      labels.begins_word[at] = bytes.starts_with(' ') || labels.names[at].starts_with("\u0120");
      if (bytes.starts_with(' ')) bytes.erase(0, 1);
      labels.texts[at] = std::move(bytes);
    } else {
      labels.texts[at] = labels.names[at];
      labels.begins_word[at] = true;
    }
  }
  labels.separator = -1;
  if (type == "phonemes" && own.decode.reads_with_lexicon()) {
    separate_by(own.tokenizer.word_boundary, labels);
  }
  return labels;
}

Transcriber::Transcriber(const SpeechRecognitionOptions& own, const SpeechUnits& units,
                         at::Device device)
    : options_(with_one_language_model(own.decode)),
      tokenizer_(units.tokenizer),
      by_attention_(own.decode.reader == "attention"),
      has_byte_tokens_(own.tokenizer.type == "byte_bpe"),
      decoder_(ctc_labels_of(*units.tokenizer, own), search_options(own),
               speller(own.tokenizer, units.tokenizer), own.data.cache_dir) {
  if (options_.lm_run.empty() || options_.method != "beam" || by_attention_) return;
  label_model_ = open_label_model(options_.lm_run, *tokenizer_, device);
}

std::unique_ptr<decoding::TokenScorer> Transcriber::scorer() const {
  return label_model_ ? label_model_->scorer() : nullptr;
}

Transcript Transcriber::transcript_of(const ctc::CtcHypothesis& hypothesis) const {
  Transcript transcript;
  transcript.text = has_byte_tokens_ ? trim(tokenizer_->decode(hypothesis.ids)) : hypothesis.text;
  transcript.score = hypothesis.score;
  transcript.words = hypothesis.words;
  return transcript;
}

std::vector<Transcript> Transcriber::read(std::span<const float> log_probs) const {
  if (log_probs.empty()) return {Transcript()};
  const auto own_scorer = scorer();
  ctc::CtcSearch search(decoder_, own_scorer.get());
  search.push(log_probs);
  std::vector<Transcript> transcripts;
  for (const auto& hypothesis : search.finish()) transcripts.push_back(transcript_of(hypothesis));
  return transcripts;
}

std::vector<std::vector<Transcript>> Transcriber::read(models::AttentionDecoder& decoder,
                                                       const models::Encoded& memory,
                                                       std::span<const float> log_probs) const {
  const auto search = attention_search(options_);
  decoding::SearchInput input;
  const auto offsets = offsets_of(memory.rows);
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    input.src_lengths.push_back(offsets[i + 1] - offsets[i]);
  }
  input.bos = input.eos = decoder.boundary();
  std::unique_ptr<decoding::StepModel> steps = decoder.start(memory, search.beam_size);
  if (options_.ctc_weight > 0) {
    steps = std::make_unique<JointSteps>(std::move(steps), log_probs, offsets, search.beam_size,
                                         options_.ctc_weight);
  }
  std::vector<std::vector<Transcript>> texts;
  for (const auto& found : decoding::search(*steps, input, search)) {
    auto& transcripts = texts.emplace_back();
    for (const auto& hypothesis : found) {
      Transcript transcript;
      transcript.text = trim(tokenizer_->decode(hypothesis.ids));
      transcript.score = hypothesis.score;
      transcript.words = words_without_times(transcript.text);
      transcript.has_times = false;
      transcripts.push_back(std::move(transcript));
    }
  }
  return texts;
}

SpeechReader::SpeechReader(std::vector<std::shared_ptr<models::SpeechModel>> models,
                           const SpeechUnits& units, const SpeechRecognitionOptions& own)
    : models_(std::move(models)), target_(units.target()) {
  if (target_ == models::SpeechTarget::kLabel) return;
  const at::Device device = models_.front()->parameters().front().device();
  transcriber_ = std::make_shared<const Transcriber>(own, units, device);
  if (!transcriber_->reads_by_attention()) return;
  if (models_.size() > 1) {
    throw Error(ExitCode::kUsage, "decode.reader: an ensemble has no attention decoder",
                "name one checkpoint, or set decode.reader=ctc");
  }
  if (models_.front()->attention() == nullptr) {
    throw Error(ExitCode::kUsage,
                "decode.reader: the model was trained without an attention decoder",
                "set decode.reader=ctc");
  }
}

SpeechReader::Heard SpeechReader::hear(const nn::PackedRows& frames, const nn::PackedRows* targets,
                                       const std::function<void()>& beat) const {
  const torch::NoGradGuard no_grad;
  const int64_t count = frames.offsets.values.size(0) - 1;
  if (frames.num_rows() == 0) {  // nothing was read, and models are not asked
    Heard heard;
    heard.transcripts.assign(static_cast<size_t>(count), std::vector{Transcript()});
    heard.log_probs.assign(static_cast<size_t>(count),
                           at::zeros({0, models_.front()->num_labels() + 1}));
    heard.label_logits = at::zeros({count, models_.front()->num_labels()});
    heard.is_finite.assign(static_cast<size_t>(count), 1);
    heard.losses = at::zeros({count}, at::kFloat);
    heard.possible = at::zeros({count}, at::kBool);
    return heard;
  }
  return target_ == models::SpeechTarget::kLabel ? hear_labels(frames, targets)
                                                 : hear_tokens(frames, targets, beat);
}

SpeechReader::Heard SpeechReader::hear_tokens(const nn::PackedRows& frames,
                                              const nn::PackedRows* targets,
                                              const std::function<void()>& beat) const {
  std::vector<models::Encoded> encoded;
  std::vector<at::Tensor> scores;
  for (const auto& model : models_) {
    encoded.push_back(model->encode(frames, {}));
    scores.push_back(model->ctc_scores(encoded.back()));
  }
  Heard heard;
  const at::Tensor log_probs = mean_log_probs(scores);
  if (targets != nullptr && models_.size() == 1) {
    const auto losses = models_.front()->losses(encoded.front(), *targets, {});
    heard.losses = losses.each.to(at::kCPU);
    heard.possible = losses.possible.to(at::kCPU);
  } else if (targets != nullptr) {
    const auto losses = models_.front()->ctc().losses(log_probs.to(scores.front().device()),
                                                      encoded.front().rows.offsets, *targets);
    heard.losses = losses.each.to(at::kCPU);
    heard.possible = losses.possible.to(at::kCPU);
  }
  const auto offsets = offsets_of(encoded.front().rows);
  const auto width = static_cast<size_t>(log_probs.size(1));
  const std::span<const float> numbers(log_probs.const_data_ptr<float>(),
                                       static_cast<size_t>(log_probs.numel()));
  const bool by_attention = transcriber_->reads_by_attention();
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const auto begin = static_cast<size_t>(offsets[i]), end = static_cast<size_t>(offsets[i + 1]);
    const auto own = numbers.subspan(begin * width, (end - begin) * width);
    heard.log_probs.push_back(log_probs.slice(0, offsets[i], offsets[i + 1]));
    const bool is_finite = std::ranges::all_of(own, [](float x) { return std::isfinite(x); });
    heard.is_finite.push_back(is_finite ? 1 : 0);
    if (by_attention) continue;
    heard.transcripts.push_back(is_finite ? transcriber_->read(own) : std::vector{Transcript()});
    if (beat) beat();
  }
  if (by_attention) {
    heard.transcripts = transcriber_->read(*models_.front()->attention(), encoded.front(), numbers);
    for (size_t i = 0; i < heard.transcripts.size(); ++i) {
      auto& transcripts = heard.transcripts[i];
      // Where there is nothing to attend to, nothing was said.
      if (offsets[i] == offsets[i + 1]) transcripts.assign(1, Transcript());
      if (!std::isfinite(transcripts.front().score)) heard.is_finite[i] = 0;
    }
  }
  return heard;
}

SpeechReader::Heard SpeechReader::hear_labels(const nn::PackedRows& frames,
                                              const nn::PackedRows* targets) const {
  Heard heard;
  std::vector<at::Tensor> logits;
  at::Tensor finite;
  for (const auto& model : models_) {
    logits.push_back(model->label_logits(model->encode(frames, {})));
    const at::Tensor of_model = logits.back().isfinite().all(1);
    finite = finite.defined() ? finite.logical_and(of_model) : of_model;
  }
  heard.label_logits = models::mean_label_logits(models::LabelTarget::kOne, logits).to(at::kCPU);
  const at::Tensor flags = finite.to(at::kCPU, at::kChar).contiguous();
  heard.is_finite.assign(flags.const_data_ptr<int8_t>(),
                         flags.const_data_ptr<int8_t>() + flags.numel());
  if (targets == nullptr) return heard;
  const at::Tensor labels = targets->ids.to(at::kCPU);  // one of each utterance
  heard.losses = models::label_cross_entropy(heard.label_logits, labels).each;
  heard.possible = at::ones({labels.size(0)}, at::kBool);
  return heard;
}

}  // namespace stretto::tasks

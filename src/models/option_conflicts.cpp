#include "models/option_conflicts.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace stretto::models {
namespace {

// A number of layers beyond its range is reported at its key; this bounds loops over layers.
constexpr int64_t kMostLayers = 1000;

std::string number(int64_t value) {
  return std::to_string(value);
}

// What is wrong with heads that share a width; empty = nothing, or a number that its key is blamed
// for.
std::string uneven_heads(int64_t heads, int64_t width, const std::string& width_text) {
  if (heads < 1 || width % heads == 0) return "";
  return number(heads) + " heads do not divide " + width_text;
}

// The same of rotary positions, which turn pairs of a head's columns.
std::string odd_heads(int64_t heads, int64_t width) {
  if (heads < 1 || width % heads != 0 || width / heads % 2 == 0) return "";
  return "rotary positions need an even head width, it is " + number(width / heads);
}

/// Notes what is wrong with the keys of one section.
class Section {
 public:
  Section(std::string section, int64_t d_model, std::vector<OptionConflict>& found)
      : found_(found), section_(std::move(section)), d_model_(d_model) {}

  std::string key(const std::string& leaf) const { return section_ + "." + leaf; }
  void wrong(const std::string& leaf, std::vector<std::string> others, std::string what,
             std::string hint) {
    others.insert(others.begin(), key(leaf));
    found_.push_back({std::move(others), std::move(what), std::move(hint)});
  }

  void heads_divide_the_width(int64_t heads) {
    const std::string what = uneven_heads(heads, d_model_, "model.d_model = " + number(d_model_));
    if (what.empty()) return;
    wrong("num_heads", {"model.d_model"}, what,
          "choose num_heads so that d_model / num_heads is a whole number");
  }

  void kv_heads_divide_the_heads(const StackOptions& stack) {
    if (stack.num_kv_heads < 1 || stack.num_heads < 1) return;
    if (stack.num_heads % stack.num_kv_heads == 0) return;
    wrong("num_kv_heads", {key("num_heads")},
          number(stack.num_kv_heads) + " heads of keys cannot be shared evenly by num_heads = " +
              counted(stack.num_heads, "head") + " of queries",
          "choose a num_kv_heads that divides num_heads, or leave it out");
  }

  void check_stack(const StackOptions& stack, const LayerStyle& style) {
    const bool has_width = stack.head_dim > 0;
    if (!has_width) heads_divide_the_width(stack.num_heads);
    kv_heads_divide_the_heads(stack);
    if (style.positions != "rotary") return;
    const int64_t width = has_width ? stack.head_dim * stack.num_heads : d_model_;
    const std::string what = odd_heads(stack.num_heads, width);
    if (what.empty()) return;
    if (has_width) return wrong("head_dim", {"model.positions"}, what, "use an even number");
    wrong("num_heads", {"model.d_model", "model.positions"}, what,
          "choose num_heads so that d_model / num_heads is even");
  }

  void sinusoids_need_an_even_width(const std::string& positions,
                                    const std::string& positions_key) {
    if (positions != "sinusoidal" || d_model_ % 2 == 0) return;
    found_.push_back({{"model.d_model", positions_key},
                      "sinusoidal positions need an even d_model, it is " + number(d_model_),
                      "use an even number"});
  }

 private:
  std::vector<OptionConflict>& found_;
  const std::string section_;
  const int64_t d_model_;
};

/// Notes what is wrong with one side of an encoder-decoder.
class Side : public Section {
 public:
  Side(const Seq2SeqOptions& model, std::string section, std::vector<OptionConflict>& found)
      : Section(std::move(section), model.d_model, found), model_(model) {}

  void check(const StackOptions& stack) { check_stack(stack, model_); }

  // `in` and `out`: of a layer that a residual connection goes around.
  void same_width(int64_t layer, int64_t in, int64_t out) {
    if (in == out) return;
    wrong("residual_from", {key("num_layers"), key("hidden_dim"), "model.d_model"},
          "layer " + number(layer) + " reads rows of " + number(in) + " and gives rows of " +
              number(out) + ", which cannot be added",
          "let the residual connections begin at a later layer, or set hidden_dim so that both "
          "are alike");
  }

  void check(const LstmEncoderOptions& lstm) {
    if (lstm.hidden_dim == 0 && lstm.is_bidirectional(lstm.num_layers - 1) &&
        model_.d_model % 2 != 0) {
      wrong("hidden_dim", {"model.d_model", key("bidirectional")},
            "two directions cannot share model.d_model = " + number(model_.d_model) + " in halves",
            "use an even d_model, or set hidden_dim");
      return;
    }
    int64_t in = model_.d_model;
    for (int64_t i = 0; i < std::min(lstm.num_layers, kMostLayers); ++i) {
      const int64_t out = lstm.width(model_.d_model, i);
      if (i >= lstm.residual_from && in != out) return same_width(i, in, out);
      in = out;
    }
  }

  void check(const LstmDecoderOptions& lstm) {
    const int64_t units = lstm.units(model_.d_model);
    if (lstm.residual_from == 0 && lstm.num_layers > 0) same_width(0, model_.d_model, units);
    if (!lstm.has_query() && lstm.attention_width != 0 && lstm.attention_width != units) {
      wrong("attention_width", {key("attention"), key("hidden_dim")},
            "attention = \"" + lstm.attention + "\" compares states of " + number(units) +
                " units with keys of " + number(lstm.attention_width),
            "leave attention_width out, or use attention = \"bahdanau_normed\"");
    }
  }

  void check_list(const std::string& leaf, const std::vector<double>& list, int64_t num_layers,
                  int64_t max, bool may_be_empty = false) {
    if (list.empty() && !may_be_empty) {
      return wrong(leaf, {}, "is empty", "give one number for all layers, as in [3]");
    }
    const std::string error = layer_list_error(list, num_layers, max);
    if (error.empty()) return;
    wrong(leaf, {key("num_layers")}, error, "give a number for each layer, or fewer");
  }

  template <class Conv>
  void check_conv(const Conv& conv) {
    check_list("kernels", conv.kernels, conv.num_layers, kMostTaps);
    check_list("channels", conv.channels, conv.num_layers, kMostChannels, true);
  }
  void check(const ConvEncoderOptions& conv) { check_conv(conv); }
  void check(const ConvDecoderOptions& conv) {
    check_conv(conv);
    if (conv.out_dim == 0 || conv.out_dim == model_.d_model || model_.tie_embeddings == "none") {
      return;
    }
    wrong("out_dim", {"model.d_model", "model.tie_embeddings"},
          "rows of " + number(conv.out_dim) +
              " cannot be multiplied by a table of model.d_model = " + number(model_.d_model),
          "leave out_dim out, or set model.tie_embeddings = \"none\"");
  }

  template <class Light>
  void check(const Light& light) {
    heads_divide_the_width(light.num_heads);
    // The default need not be shortened for a model of few layers.
    if (light.kernels != Light{}.kernels) {
      check_list("kernels", light.kernels, light.num_layers, kMostTaps);
    }
    sinusoids_need_an_even_width(light.positions, key("positions"));
  }

 private:
  const Seq2SeqOptions& model_;
};

int64_t rows_of(const Seq2SeqOptions& model, const EncoderChoice& encoder) {
  if (!encoder.is<LstmEncoderOptions>()) return model.d_model;
  const auto& lstm = encoder.as<LstmEncoderOptions>();
  return lstm.width(model.d_model, lstm.num_layers - 1);
}

void decoder_reads_the_width(const Seq2SeqOptions& model, std::vector<OptionConflict>& found) {
  if (model.decoder.is<LstmDecoderOptions>()) return;
  each_encoder(model, [&](const EncoderChoice& encoder, const std::string& section) {
    const int64_t rows = rows_of(model, encoder);
    if (rows == model.d_model) return;
    // Rows of two encoders can be joined only where they have one width.
    const bool alone = model.encoders.empty();
    found.push_back(
        {{section + ".hidden_dim", "model.d_model", "model.decoder.name"},
         "the encoder's rows are " + number(rows) + " wide, and a `" + model.decoder.name() +
             "` decoder attends to rows of model.d_model = " + number(model.d_model),
         "leave " + section + ".hidden_dim out" +
             (alone ? ", or use model.decoder.name = \"lstm\", which attends to rows of "
                      "any width"
                    : "")});
  });
}

// One softmax goes over the rows of both, and one projection makes keys and values of them.
void encoders_are_two_of_one_width(const Seq2SeqOptions& model,
                                   std::vector<OptionConflict>& found) {
  if (model.encoders.empty()) return;
  if (!has_two_encoders(model)) {
    const auto count = static_cast<int64_t>(model.encoders.size());
    found.push_back({{"model.encoders"},
                     "there " + std::string(count == 1 ? "is " : "are ") + number(count) +
                         (count == 1 ? " encoder" : " encoders") +
                         ", and a model reads two sources",
                     "write [[model.encoders]] twice, once for each source; for one source use "
                     "[model.encoder]"});
    return;
  }
  // For other decoders, decoder_reads_the_width() reports it.
  if (!model.decoder.is<LstmDecoderOptions>()) return;
  const int64_t first = rows_of(model, model.encoders[0]),
                second = rows_of(model, model.encoders[1]);
  if (first == second) return;
  // Only a recurrent encoder has rows of another width than d_model.
  const std::string key =
      std::string("model.encoders.") + (second == model.d_model ? "0" : "1") + ".hidden_dim";
  found.push_back({{key, "model.encoders", "model.d_model"},
                   "the decoder attends to the rows of both encoders at once, and they are " +
                       number(first) + " and " + number(second) + " wide",
                   "set hidden_dim so that both encoders give rows of one width"});
}

void last_state_fits(const Seq2SeqOptions& model, std::vector<OptionConflict>& found) {
  if (!model.decoder.is<LstmDecoderOptions>()) return;
  const auto& to = model.decoder.as<LstmDecoderOptions>();
  if (to.initial_state != "last") return;
  const auto wrong = [&](const std::string& key, const std::string& what) {
    found.push_back({{"model.decoder.initial_state",
                      model.encoders.empty() ? "model.encoder.name" : "model.encoders.0.name", key},
                     what,
                     "use initial_state = \"mean\", which any encoder has"});
  };
  // With two encoders, the states of the first are taken.
  const EncoderChoice& encoder = first_encoder(model);
  const std::string section = model.encoders.empty() ? "model.encoder" : "model.encoders.0";
  if (!encoder.is<LstmEncoderOptions>()) {
    return wrong(section + ".name",
                 "\"last\" needs a recurrent encoder, not `" + encoder.name() + "`");
  }
  const auto& from = encoder.as<LstmEncoderOptions>();
  if (from.num_layers != to.num_layers) {
    return wrong(section + ".num_layers", "\"last\" needs as many layers on both sides, they are " +
                                              number(from.num_layers) + " and " +
                                              number(to.num_layers));
  }
  if ((from.cell == "gru") != (to.cell == "gru")) {
    return wrong(section + ".cell", "\"last\" needs states alike on both sides, cells are " +
                                        from.cell + " and " + to.cell);
  }
  for (int64_t i = 0; i < std::min(to.num_layers, kMostLayers); ++i) {
    const int64_t width = from.width(model.d_model, i), units = to.units(model.d_model);
    if (width == units) continue;
    return wrong(section + ".hidden_dim", "\"last\" needs states of one width: layer " + number(i) +
                                              " of the encoder has " + number(width) +
                                              ", the decoder's " + number(units));
  }
}

void one_norm_stands_before_its_parts(const LayerStyle& style, std::vector<OptionConflict>& found) {
  if (!style.parallel_residual || style.norm == "pre") return;
  found.push_back({{"model.parallel_residual", "model.norm"},
                   "all parts of a layer read the rows behind one norm, which has to stand before "
                   "them, but model.norm is \"" +
                       style.norm + "\"",
                   "set model.norm = \"pre\", or leave parallel_residual out"});
}

std::string with_section(std::string text, const std::string& section) {
  const std::string own = "model.decoder";
  for (size_t at = text.find(own); at != std::string::npos; at = text.find(own, at)) {
    text.replace(at, own.size(), section);
    at += section.size();
  }
  return text;
}

bool same_finding(const OptionConflict& a, const OptionConflict& b) {
  return a.keys == b.keys && a.what == b.what;
}

// Each decoder by itself behind the encoder. What concerns no decoder is reported once.
std::vector<OptionConflict> conflicts_of_heads(const Seq2SeqOptions& model) {
  std::vector<OptionConflict> found;
  for (size_t head = 0; head < model.heads.size(); ++head) {
    const std::string section = decoder_section(model, head);
    for (OptionConflict conflict : option_conflicts(model_of_head(model, head))) {
      bool of_decoder = false;
      for (std::string& key : conflict.keys) {
        of_decoder = of_decoder || key.starts_with("model.decoder");
        key = with_section(key, section);
      }
      conflict.what = with_section(conflict.what, section);
      conflict.hint = with_section(conflict.hint, section);
      if (of_decoder) conflict.what = "head `" + model.heads[head].name + "`: " + conflict.what;
      const bool is_known =
          std::any_of(found.begin(), found.end(),
                      [&](const OptionConflict& other) { return same_finding(conflict, other); });
      if (!is_known) found.push_back(std::move(conflict));
    }
  }
  return found;
}

// Each size is given by a key or by the preset.
template <class Sizes>
void sizes_are_given(const Sizes& sizes, std::vector<OptionConflict>& found) {
  const auto needs = [&](const char* key, int64_t size) {
    if (size > 0) return;
    found.push_back({{std::string("model.") + key, "model.preset"},
                     "model.preset = \"none\" gives no " + std::string(key),
                     std::string("set model.") + key + ", or choose a preset"});
  };
  needs("num_layers", sizes.num_layers);
  needs("d_model", sizes.d_model);
  needs("num_heads", sizes.num_heads);
}

// Sizes that neither a key nor the preset gives, and heads that do not fit.
void causal_sizes_fit(const CausalTransformerOptions& model, std::vector<OptionConflict>& found) {
  const CausalSizes sizes = sizes_of(model);
  sizes_are_given(sizes, found);
  if (!found.empty()) return;
  const std::vector<std::string> keys{"model.num_heads", "model.d_model", "model.preset"};
  if (model.head_dim == 0 && sizes.d_model % sizes.num_heads != 0) {
    found.push_back(
        {keys, uneven_heads(sizes.num_heads, sizes.d_model, "a width of " + number(sizes.d_model)),
         "choose num_heads and d_model so that d_model / num_heads is a whole number, or set "
         "model.head_dim"});
    return;
  }
  if (model.num_kv_heads > 0 && sizes.num_heads % model.num_kv_heads != 0) {
    found.push_back({{"model.num_kv_heads", "model.num_heads", "model.preset"},
                     number(model.num_kv_heads) + " heads of keys cannot be shared evenly by " +
                         counted(sizes.num_heads, "head") + " of queries",
                     "choose a num_kv_heads that divides num_heads, or leave it out"});
  }
  const int64_t width = model.head_dim > 0 ? model.head_dim : sizes.d_model / sizes.num_heads;
  if (model.positions == "rotary" && width % 2 != 0) {
    found.push_back({{model.head_dim > 0 ? "model.head_dim" : "model.num_heads", "model.positions"},
                     "rotary positions need an even head width, it is " + number(width),
                     "choose sizes so that a head has an even width"});
  }
  if (model.positions == "sinusoidal" && sizes.d_model % 2 != 0) {
    found.push_back({{"model.d_model", "model.positions"},
                     "sinusoidal positions need an even d_model, it is " + number(sizes.d_model),
                     "use an even number"});
  }
}

std::vector<OptionConflict> conflicts_of(const CausalTransformerOptions& model) {
  std::vector<OptionConflict> found;
  causal_sizes_fit(model, found);
  LayerStyle style;
  style.norm = model.norm;
  style.parallel_residual = model.parallel_residual;
  one_norm_stands_before_its_parts(style, found);
  if (model.attention_softcap > 0 && (model.positions == "alibi" || model.positions == "t5")) {
    found.push_back({{"model.attention_softcap", "model.positions"},
                     "scores that are bent by tanh take no bias of distances, and "
                     "model.positions is \"" +
                         model.positions + "\"",
                     "use other positions, or set model.attention_softcap = 0"});
  }
  const nn::RotaryOptions& rope = model.rope;
  if (model.positions == "rotary" && rope.scaling == "llama3" &&
      rope.low_frequency_factor >= rope.high_frequency_factor) {
    found.push_back({{"model.rope.low_frequency_factor", "model.rope.high_frequency_factor"},
                     "low_frequency_factor must be below high_frequency_factor",
                     "Llama 3.1 has 1 and 4"});
  }
  if (model.positions == "rotary" && rope.scaling == "yarn" &&
      rope.slow_rotations >= rope.fast_rotations) {
    found.push_back({{"model.rope.slow_rotations", "model.rope.fast_rotations"},
                     "slow_rotations must be below fast_rotations",
                     "YaRN has 1 and 32"});
  }
  return found;
}

// Each layer stands by itself: any sizes fit.
std::vector<OptionConflict> conflicts_of(const CausalLstmModelOptions& /*model*/) {
  return {};
}

constexpr const char* kCutoffs = "model.adaptive_softmax.cutoffs";

// What the softmaxes of groups of tokens do not have.
void adaptive_softmax_fits(const CausalModelOptions& model, std::vector<OptionConflict>& found) {
  const AdaptiveOptions& groups = adaptive_softmax_of(model);
  if (!groups.is_on()) return;
  const std::string problem = groups.problem(AdaptiveOptions::kMostCutoff + 2);
  if (!problem.empty()) {
    found.push_back({{kCutoffs, "model.adaptive_softmax.div_value"},
                     problem,
                     "give whole numbers in ascending order, such as [2000, 10000]"});
  }
  if (has_output_bias(model)) {
    found.push_back({{"model.output_bias", kCutoffs},
                     "an adaptive softmax adds no bias",
                     "set model.output_bias = false, or leave the cutoffs out"});
  }
  if (logit_softcap_of(model) > 0) {
    found.push_back({{"model.logit_softcap", kCutoffs},
                     "the logits of an adaptive softmax are not capped",
                     "set model.logit_softcap = 0, or leave the cutoffs out"});
  }
}

}  // namespace

std::vector<OptionConflict> option_conflicts(const Seq2SeqOptions& model) {
  if (!model.heads.empty()) return conflicts_of_heads(model);
  std::vector<OptionConflict> found;
  Side decoder(model, "model.decoder", found);
  each_encoder(model, [&](const EncoderChoice& choice, const std::string& section) {
    Side encoder(model, section, found);
    choice.visit([&](const auto& part) { encoder.check(part); });
  });
  model.decoder.visit([&](const auto& part) { decoder.check(part); });
  if (has_transformer(model)) {
    decoder.sinusoids_need_an_even_width(model.positions, "model.positions");
    one_norm_stands_before_its_parts(model, found);
  }
  decoder_reads_the_width(model, found);
  encoders_are_two_of_one_width(model, found);
  last_state_fits(model, found);
  return found;
}

std::vector<OptionConflict> option_conflicts(const StackOptions& stack, const LayerStyle& style,
                                             int64_t d_model, const std::string& section) {
  std::vector<OptionConflict> found;
  Section own(section, d_model, found);
  own.check_stack(stack, style);
  own.sinusoids_need_an_even_width(style.positions, "model.positions");
  one_norm_stands_before_its_parts(style, found);
  return found;
}

std::vector<OptionConflict> option_conflicts(const CausalModelOptions& model) {
  auto found = model.visit([](const auto& kind) { return conflicts_of(kind); });
  adaptive_softmax_fits(model, found);
  return found;
}

std::vector<OptionConflict> vocabulary_conflicts(const CausalModelOptions& model, int64_t num_ids) {
  std::vector<OptionConflict> found;
  const AdaptiveOptions& groups = adaptive_softmax_of(model);
  if (num_ids < groups.least_tokens()) {
    found.push_back({{kCutoffs, "tokenizer.vocab_size"},
                     "a vocabulary of " + counted(num_ids, "token") +
                         " cannot be divided so: " + groups.problem(num_ids),
                     "lower the cutoffs, or raise tokenizer.vocab_size"});
  }
  return found;
}

std::vector<OptionConflict> option_conflicts(const BertOptions& model) {
  const BertSizes sizes = sizes_of(model);
  std::vector<OptionConflict> found;
  sizes_are_given(sizes, found);
  if (!found.empty()) return found;
  // A user who sets one of two sizes is told of that one.
  const std::string blamed =
      model.num_heads == 0 && model.d_model > 0 ? "model.d_model" : "model.num_heads";
  const std::vector<std::string> keys{
      blamed, blamed == "model.d_model" ? "model.num_heads" : "model.d_model", "model.preset"};
  const bool has_width = model.head_dim > 0;
  const std::string uneven = has_width ? ""
                                       : uneven_heads(sizes.num_heads, sizes.d_model,
                                                      "a width of " + number(sizes.d_model));
  const int64_t columns = has_width ? model.head_dim * sizes.num_heads : sizes.d_model;
  const std::string odd = model.positions == "rotary" ? odd_heads(sizes.num_heads, columns) : "";
  if (!uneven.empty()) {
    found.push_back({keys, uneven,
                     "choose num_heads and d_model so that d_model / num_heads is a whole number"});
  }
  if (!odd.empty() && has_width) {
    found.push_back({{"model.head_dim", "model.positions"}, odd, "use an even number"});
  } else if (!odd.empty()) {
    found.push_back(
        {keys, odd, "choose num_heads and d_model so that d_model / num_heads is even"});
  }
  if (model.positions == "sinusoidal" && sizes.d_model % 2 != 0) {
    found.push_back({{"model.d_model", "model.positions"},
                     "sinusoidal positions need an even d_model, it is " + number(sizes.d_model),
                     "use an even number"});
  }
  return found;
}

}  // namespace stretto::models

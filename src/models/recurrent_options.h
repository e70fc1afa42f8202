#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "models/embedding_options.h"

/// Recurrent encoders and decoders: LSTM, GRU and layer-normed LSTM, with attention. Defaults are
/// those of GNMT (Wu et al. 2016, arXiv:1609.08144) as OpenSeq2Seq has it, where nothing else is
/// said.
namespace stretto::models {

/// Whether layers of this cell norm each step over their units.
inline bool norms_units(const std::string& cell) {
  return cell == "norm_lstm";
}

/// Keys that encoder and decoder have in common, for an options struct `O` that has the members.
template <class O>
auto recurrent_fields() {
  using namespace config;
  const std::vector<std::string> with_cell{"lstm", "norm_lstm"};
  return Fields{
      field(&O::cell, "cell",
            "LSTM, GRU in cuDNN's form, or LSTM with normed products and cell (Ba et al. 2016)",
            one_of({"lstm", "gru", "norm_lstm"}))
          .also_called({"cell_type", "rnn_type", "rnn_cell", "enc_cell", "dec_cell",
                        "encoder_cell_type", "decoder_cell_type", "unit_type"})
          .value_also_called("lstm", {"LSTMCell", "basic_lstm"})
          .value_also_called("gru", {"GRUCell", "cudnn_gru", "gru_nematus"},
                             "the reset gate stands behind the recurrent product")
          .value_also_called("norm_lstm", {"layer_norm_lstm", "lnlstm", "lstm_layer_norm"}),
      field(&O::num_layers, "num_layers", "recurrent layers, one upon the other", between(1, 1000))
          .also_called({"layers", "depth", "num_hidden_layers", "enc_depth", "dec_depth",
                        "n_layers", "nlayers", "encoder_layers", "decoder_layers"}),
      field(&O::hidden_dim, "hidden_dim",
            "units of a layer, in each direction; 0 takes the number that gives rows of d_model",
            between(0, 65536))
          .also_called({"num_units", "dim_rnn", "lstm_size", "cell_size", "hidden_size", "rnn_size",
                        "encoder_hidden_size", "decoder_hidden_size", "encoder_cell_units",
                        "decoder_cell_units"}),
      field(&O::residual_from, "residual_from",
            "first layer, counted from 0, whose input is added to its output; GNMT: 2, the third. "
            "num_layers or more: no layer",
            between(0, 1000), {.hidden_in_shapes = true})
          .also_called({"encoder_use_skip_connections", "decoder_use_skip_connections", "skip",
                        "rnn_residual", "num_residual_layers"},
                       "a layer's number, counted from 0"),
      field(&O::dropout, "dropout", "on the input of every layer, embeddings among them",
            fraction())
          .also_called({"dropout_rnn", "encoder_dropout_in", "decoder_dropout_in", "rnn_dropout"})
          .also_called({"dp_input_keep_prob", "encoder_dp_input_keep_prob",
                        "decoder_dp_input_keep_prob", "keep_prob"},
                       "1 - the probability of keeping"),
      field(&O::variational, "variational",
            "one mask of `dropout` for all steps of a sequence (Gal and Ghahramani 2016)", any())
          .also_called({"variational_dropout", "locked_dropout", "lock_dropout"})
          .read_unless_zero("dropout"),
      field(&O::recurrent_dropout, "recurrent_dropout",
            "on the state of the step before, with one mask for all steps of a sequence",
            fraction())
          .also_called({"hidden_to_hidden_dropout", "dropout_hidden", "state_dropout"})
          .also_called({"recurrent_keep_prob"}, "1 - the probability of keeping"),
      field(&O::zoneout_hidden, "zoneout_hidden",
            "probability that a unit of h keeps its value of the step before (Krueger et al. "
            "2016: 0.05)",
            fraction())
          .also_called({"zoneout", "zoneout_prob", "zoneout_h"}),
      field(&O::zoneout_cell, "zoneout_cell",
            "the same of an LSTM's cell (Krueger et al. 2016: 0.5)", fraction())
          .also_called({"zoneout_c", "zoneout_state"})
          .read_with("cell", with_cell),
      field(&O::forget_bias, "forget_bias",
            "first bias of an LSTM's forget gate (Jozefowicz et al. 2015: 1); it is learned",
            between(-10, 10))
          .also_called({"forget_gate_bias", "lstm_forget_bias"})
          .read_with("cell", with_cell),
      field(&O::init_bound, "init_bound",
            "matrices and unscaled tables of tokens (model.embedding_scale) start uniform "
            "between minus and plus this number (GNMT: 0.1; 0.04 in the paper). 0: "
            "Xavier-uniform, gate by gate",
            between(0, 10))
          .also_called({"init_weight", "param_init", "uniform_init", "init_scale"}),
  };
}

/// `[model.encoder]` with the name `lstm`.
struct LstmEncoderOptions {
  static constexpr const char* kName = "lstm";

  std::string cell = "lstm";
  int64_t num_layers = 2;
  int64_t hidden_dim = 0;
  int64_t residual_from = 2;
  double dropout = 0.2;
  bool variational = false;
  double recurrent_dropout = 0;
  double zoneout_hidden = 0;
  double zoneout_cell = 0;
  double forget_bias = 1;
  double init_bound = 0.1;
  bool bidirectional = true;
  int64_t bidirectional_layers = 1;

  static auto fields() {
    using namespace config;
    using O = LstmEncoderOptions;
    return recurrent_fields<O>().with(Fields{
        field(&O::bidirectional, "bidirectional",
              "the first layers read in both directions, and give both states side by side", any())
            .also_called({"brnn", "bidir", "encoder_bidirectional", "birnn"}),
        field(&O::bidirectional_layers, "bidirectional_layers",
              "how many of the first layers are bidirectional, if any is; GNMT: 1. num_layers "
              "or more: all",
              between(1, 1000))
            .also_called({"num_bi_layers", "enc_bidirectional_layers"})
            .read_with("bidirectional", {"true"}),
    });
  }

  /// Layer number `layer`, counted from 0.
  bool is_bidirectional(int64_t layer) const {
    return bidirectional && layer < bidirectional_layers;
  }
  /// Units of a layer in one direction. Unless they are set, a bidirectional layer at the top has
  /// d_model / 2, so that rows of the encoder are d_model wide, and so have the layers below it;
  /// else every layer has d_model, in each direction, as in GNMT.
  int64_t units(int64_t d_model) const {
    if (hidden_dim > 0) return hidden_dim;
    return is_bidirectional(num_layers - 1) ? d_model / 2 : d_model;
  }
  /// Width of the rows that layer number `layer` gives; of the top one: the encoder's.
  int64_t width(int64_t d_model, int64_t layer) const {
    return units(d_model) * (is_bidirectional(layer) ? 2 : 1);
  }
  EmbeddingKind embedding_kind() const { return recurrent_embedding(init_bound); }
};

/// `[model.decoder]` with the name `lstm`.
struct LstmDecoderOptions {
  static constexpr const char* kName = "lstm";

  std::string cell = "lstm";
  int64_t num_layers = 2;
  int64_t hidden_dim = 0;
  int64_t residual_from = 2;
  double dropout = 0.2;
  bool variational = false;
  double recurrent_dropout = 0;
  double zoneout_hidden = 0;
  double zoneout_cell = 0;
  double forget_bias = 1;
  double init_bound = 0.1;
  std::string attention = "bahdanau_normed";
  int64_t attention_width = 0;
  std::string context_to = "gnmt_v2";
  std::string output = "state";
  std::string initial_state = "zero";

  static auto attention_fields() {
    using namespace config;
    using O = LstmDecoderOptions;
    const Meta hidden{.hidden_in_shapes = true};
    return Fields{
        field(&O::attention, "attention",
              "score of a query q (the first layer's state) and a key k (a row of the "
              "encoder). bahdanau: v tanh(q + k). bahdanau_normed: the same with g v / |v| and "
              "a bias. luong: q k. luong_scaled: g q k",
              one_of({"bahdanau", "bahdanau_normed", "luong", "luong_scaled"}))
            .also_called({"attention_type", "global_attention", "attention_option", "attn_type"})
            .also_called({"bahdanau_normalize"}, "= \"bahdanau_normed\"")
            .also_called({"luong_scale"}, "= \"luong_scaled\"")
            .value_also_called("bahdanau", {"mlp", "additive", "concat"})
            .value_also_called("bahdanau_normed", {"normed_bahdanau", "gnmt", "gnmt_v2"})
            .value_also_called("luong", {"dot", "general", "multiplicative"})
            .value_also_called("luong_scaled", {"scaled_luong", "scaled_dot"}),
        field(&O::attention_width, "attention_width",
              "width of queries and keys; 0 is hidden_dim, the only width of Luong's scores",
              between(0, 65536))
            .also_called({"attention_layer_size", "attention_units", "attention_dim", "attn_dim"})
            .read_with("attention", {"bahdanau", "bahdanau_normed"}),
        field(&O::context_to, "context_to",
              "layers that read the context (what was attended to). first: the first alone, "
              "one step later. gnmt: the others too, one step later. gnmt_v2: the others too, "
              "in the same step",
              one_of({"first", "gnmt", "gnmt_v2"}), hidden)
            .also_called({"attention_architecture", "use_new_attention"})
            .also_called({"input_feed", "input_feeding"}, "always on")
            .value_also_called("first", {"standard", "bottom", "input_feed"}),
        field(&O::output, "output",
              "what predicts a token: the top layer's state (GNMT), or tanh(W [state, context]) "
              "(Luong et al. 2015, equation 5)",
              one_of({"state", "attended"}))
            .also_called({"output_attention", "attentional_state"}, "= \"attended\"")
            .value_also_called("attended", {"luong", "attentional"}),
        field(&O::initial_state, "initial_state",
              "zero: zeroes, as OpenSeq2Seq. mean: c = W (mean of the encoder's rows) + b and "
              "h = tanh(c), from any encoder. last: a recurrent encoder's last states, layer "
              "by layer",
              one_of({"zero", "mean", "last"}), hidden)
            .also_called({"bridge", "pass_hidden_state", "decoder_init", "copy_encoder_state"})
            .value_also_called("zero", {"zeros", "none", "false"})
            .value_also_called("last", {"copy", "encoder", "true"}),
    };
  }

  static auto fields() { return recurrent_fields<LstmDecoderOptions>().with(attention_fields()); }

  /// Units of a layer.
  int64_t units(int64_t d_model) const { return hidden_dim > 0 ? hidden_dim : d_model; }
  /// Width of queries and keys.
  int64_t key_width(int64_t d_model) const {
    return attention_width > 0 ? attention_width : units(d_model);
  }
  /// Luong's scores compare the state itself with the keys.
  bool has_query() const { return attention.starts_with("bahdanau"); }
  /// Whether layers above the first read the context too.
  bool context_to_all() const { return context_to != "first"; }
  EmbeddingKind embedding_kind() const { return recurrent_embedding(init_bound); }
};

}  // namespace stretto::models

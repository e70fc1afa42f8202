#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "models/embedding_options.h"

namespace stretto::models {

/// A recurrent language model: LSTM, GRU or layer-normed LSTM, regularised as AWD-LSTM (Merity et
/// al. 2017, arXiv:1708.02182). Defaults are its settings for the Penn Treebank, but for the first
/// bias of the forget gate. Numbers in the help are of its code, awd-lstm-lm.
struct CausalLstmOptions {
  static constexpr const char* kName = "lstm";

  std::string cell = "lstm";
  int64_t num_layers = 3;
  int64_t hidden_dim = 1150;
  double embedding_dropout = 0.1;
  double input_dropout = 0.4;
  double hidden_dropout = 0.25;
  double output_dropout = 0.4;
  bool variational = true;
  double weight_drop = 0.5;
  double activation_reg = 2;
  double temporal_reg = 1;
  double forget_bias = 1;
  double init_bound = 0;
  double embedding_bound = 0.1;

  static auto dropout_fields() {
    using namespace config;
    using O = CausalLstmOptions;
    return Fields{
        field(&O::embedding_dropout, "embedding_dropout",
              "on whole words: a word of the vocabulary is zero wherever an update reads it, and "
              "the others are scaled (Gal and Ghahramani 2016)",
              fraction())
            .also_called({"dropoute", "embed_p", "emb_dropout"})
            .also_called({"emb_keep_prob", "embed_keep_prob", "encoder_emb_keep_prob"},
                         "1 - the probability of keeping"),
        field(&O::input_dropout, "input_dropout",
              "on the token vectors that the first layer reads; 0.4 to 0.65 is usual", fraction())
            .also_called({"dropouti", "input_p", "dropout_in"})
            .also_called({"dp_input_keep_prob", "input_keep_prob"},
                         "1 - the probability of keeping"),
        field(&O::hidden_dropout, "hidden_dropout",
              "on the rows between two layers; 0.2 to 0.3 is usual", fraction())
            .also_called({"dropouth", "hidden_p", "rnn_dropout", "dropout_rnn"}),
        field(&O::output_dropout, "output_dropout",
              "on the rows that leave the last layer; 0.4 is usual", fraction())
            .also_called({"output_p", "dropout_out"})
            .also_called({"dropout"},
                         "input_dropout, hidden_dropout and output_dropout are keys of their own")
            .also_called({"dp_output_keep_prob", "output_keep_prob", "encoder_last_keep_prob"},
                         "1 - the probability of keeping"),
        field(&O::variational, "variational",
              "one mask of these three for all steps of a lane's stretch (locked dropout)", any())
            .also_called({"locked_dropout", "lock_dropout", "variational_dropout"})
            .read_unless_zero("input_dropout")
            .read_unless_zero("hidden_dropout")
            .read_unless_zero("output_dropout"),
        field(&O::weight_drop, "weight_drop",
              "on the elements of the recurrent matrices (DropConnect; Wan et al. 2013), with one "
              "mask for an update; in training alone",
              fraction())
            .also_called({"wdrop", "weight_p", "weight_dropout", "dropconnect"})
            .also_called({"recurrent_keep_prob", "recurrent_weight_keep_prob"},
                         "1 - the probability of keeping"),
    };
  }

  static auto fields() {
    using namespace config;
    using O = CausalLstmOptions;
    return Fields{
        field(&O::cell, "cell",
              "LSTM, GRU in cuDNN's form, or LSTM with normed products and cell (Ba et al. 2016)",
              one_of({"lstm", "gru", "norm_lstm"}))
            .also_called({"cell_type", "rnn_type", "rnn_cell", "unit_type"})
            .value_also_called("lstm", {"LSTMCell", "basic_lstm"})
            .value_also_called("gru", {"GRUCell", "cudnn_gru"},
                               "the reset gate stands behind the recurrent product")
            .value_also_called("norm_lstm", {"layer_norm_lstm", "lnlstm", "lstm_layer_norm"}),
        field(&O::num_layers, "num_layers", "recurrent layers, one upon the other",
              between(1, 1000))
            .also_called({"nlayers", "n_layers", "layers", "depth", "num_hidden_layers"}),
        field(&O::hidden_dim, "hidden_dim",
              "units of a layer; 0 = model.d_model. The last layer has model.d_model where the "
              "output projection is the table of tokens",
              between(0, 65536))
            .also_called({"nhid", "n_hid", "num_units", "hidden_size", "rnn_size", "lstm_size"})}
        .with(dropout_fields())
        .with(Fields{
            field(&O::activation_reg, "activation_reg",
                  "alpha: the loss of a token has so many times the mean square of its row behind "
                  "output_dropout",
                  at_least(0))
                .also_called({"alpha", "activation_regularization"}),
            field(&O::temporal_reg, "temporal_reg",
                  "beta: likewise the mean square of what the last layer's rows change by from "
                  "one token to the next",
                  at_least(0))
                .also_called({"beta", "temporal_activation_regularization", "slowness"}),
            field(&O::forget_bias, "forget_bias",
                  "first bias of an LSTM's forget gate (Jozefowicz et al. 2015: 1); it is learned",
                  between(-10, 10))
                .also_called({"forget_gate_bias", "lstm_forget_bias"})
                .read_with("cell", {"lstm", "norm_lstm"}),
            field(&O::init_bound, "init_bound",
                  "matrices of layers start uniform between minus and plus this number; 0: the "
                  "layer's units to the power of -0.5, as in PyTorch",
                  between(0, 10))
                .also_called({"init_weight", "param_init", "uniform_init", "init_scale"}),
            field(&O::embedding_bound, "embedding_bound",
                  "likewise the table of tokens; 0: Xavier-uniform", between(0, 10))
                .also_called({"initrange", "init_range"}),
        });
  }

  /// Units of layer number `layer`, counted from 0.
  /// @param output_width  of the rows that leave the stack; see output_width()
  int64_t units(int64_t d_model, int64_t layer, int64_t output_width) const {
    return layer + 1 == num_layers ? output_width : inner_units(d_model);
  }
  /// Width of the rows that leave the stack: d_model where the output projection is the table of
  /// tokens, else that of every layer.
  int64_t output_width(int64_t d_model, bool is_tied) const {
    return is_tied ? d_model : inner_units(d_model);
  }
  /// Between minus and plus what the matrices of a layer of so many units start.
  double bound_of(int64_t units) const {
    return init_bound > 0 ? init_bound : 1 / std::sqrt(static_cast<double>(units));
  }
  EmbeddingKind embedding_kind() const { return recurrent_embedding(embedding_bound); }
  /// What stands in the loss of training beside the negative log-likelihood; false = nothing.
  bool has_regulariser() const { return activation_reg > 0 || temporal_reg > 0; }

 private:
  int64_t inner_units(int64_t d_model) const { return hidden_dim > 0 ? hidden_dim : d_model; }
};

}  // namespace stretto::models

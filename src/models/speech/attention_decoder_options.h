#pragma once

#include <cstdint>
#include <string>

#include "config/field.h"

namespace stretto::models {

/// An attention decoder beside CTC, as the options of an encoder hold it (`[model.decoder]`;
/// models/speech/attention_decoder.h). Sizes are those of OpenSeq2Seq's Listen, Attend and Spell.
struct AttentionDecoderOptions {
  double weight = 0;
  int64_t num_layers = 1;
  int64_t hidden_dim = 512;
  int64_t embedding_dim = 256;
  int64_t attention_dim = 256;
  int64_t location_filters = 32;
  int64_t location_kernel = 31;
  bool coverage = true;
  double dropout = 0.1;
  double label_smoothing = 0;

  /// Whether there is such a decoder.
  bool is_on() const { return weight > 0; }

  static auto attention_fields() {
    using namespace config;
    using O = AttentionDecoderOptions;
    const Meta hidden{.hidden_in_shapes = true};
    return Fields{
        field(&O::attention_dim, "attention_dim", "width of queries and keys", between(1, 65536))
            .also_called({"attention_layer_size", "att_dim", "adim"})
            .read_unless_zero("weight"),
        field(&O::location_filters, "location_filters",
              "filters over the weights of the steps before, which tell attention where it was "
              "(Chorowski et al. 2015)",
              between(1, 4096))
            .also_called({"aconv_chans", "attention_location_n_filters", "location_channels"})
            .read_unless_zero("weight"),
        field(&O::location_kernel, "location_kernel",
              "rows of the encoder that such a filter "
              "covers; odd",
              between(1, 1023), {.unit = "rows"})
            .also_called({"aconv_filts", "attention_location_kernel_size"})
            .read_unless_zero("weight"),
        field(&O::coverage, "coverage",
              "the filters read the sum of the weights of all steps before; otherwise those of the "
              "last step",
              any(), hidden)
            .also_called({"use_coverage", "cumulative_weights"})
            .read_unless_zero("weight"),
    };
  }

  static auto fields() {
    using namespace config;
    using O = AttentionDecoderOptions;
    const Meta hidden{.hidden_in_shapes = true};
    return Fields{
        field(&O::weight, "weight",
              "loss = (1 - weight) CTC + weight attention; 0 = there is no decoder, and CTC trains "
              "alone; OpenSeq2Seq: 0.75",
              fraction())
            .also_called({"lambda_value", "ctc_weight", "mtlalpha", "ctc_lambda"},
                         "1 - the weight of CTC"),
        field(&O::num_layers, "num_layers", "recurrent layers (LSTM); the first one attends",
              between(1, 100))
            .also_called({"dlayers", "decoder_layers"})
            .read_unless_zero("weight"),
        field(&O::hidden_dim, "hidden_dim", "units of a layer", between(1, 65536))
            .also_called({"dunits", "hidden_size", "num_units", "decoder_units"})
            .read_unless_zero("weight"),
        field(&O::embedding_dim, "embedding_dim", "width of the vectors of labels",
              between(1, 65536))
            .also_called({"tgt_emb_size", "emb_dim"})
            .read_unless_zero("weight")}
        .with(attention_fields())
        .with(Fields{
            field(&O::dropout, "dropout", "on the input of each layer and on the last one's output",
                  fraction(), hidden)
                .also_called({"dropout_rate_decoder"})
                .read_unless_zero("weight"),
            field(&O::label_smoothing, "label_smoothing",
                  "share of a target that goes to the other labels, in the decoder's loss alone",
                  fraction(), hidden)
                .also_called({"lsm_weight", "smoothing"})
                .read_unless_zero("weight"),
        });
  }
};

}  // namespace stretto::models

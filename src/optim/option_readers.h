#pragma once

#include <algorithm>
#include <string_view>

/// Who reads which key of `[optim]`, `[schedule]` and `[train.loss_scale]`. No libtorch: `stretto
/// check` tells by it of keys that change nothing.
namespace stretto::optim {

/// `key` is read when the value of `chooser` is among `names`.
struct OptionReaders {
  std::string_view key;      ///< "optim.beta1"
  std::string_view chooser;  ///< "optim.name"; empty = it is always read
  std::string_view names;    ///< with spaces between
};

/// All but noam, whose gradual warm-up is its own.
inline constexpr std::string_view kSchedulesWithALine =
    "constant fixed piecewise step exponential polynomial linear cosine cosine_restarts "
    "inverse_sqrt tri_stage plateau";

/// Every key of the three sections. One that has several rows is read when any of them says so.
/// tests/optim/option_readers_test.cpp changes each key under each name and compares what comes
/// out.
inline constexpr OptionReaders kOptionReaders[] = {
    {"optim.name", "", ""},
    {"optim.lr", "", ""},
    {"optim.reference_batch", "optim.lr_scaling", "linear sqrt"},
    {"optim.lr_scaling", "", ""},
    {"optim.beta1", "optim.name", "adam adamw radam lamb novograd"},
    {"optim.beta2", "optim.name", "adam adamw radam lamb novograd rmsprop"},
    {"optim.epsilon", "optim.name", "adam adamw radam lamb novograd adagrad rmsprop"},
    {"optim.weight_decay", "", ""},
    {"optim.momentum", "optim.name", "sgd lars larc rmsprop"},
    {"optim.nesterov", "optim.name", "sgd lars larc"},
    {"optim.clip_norm", "", ""},
    {"optim.momentum_form", "optim.name", "sgd lars larc"},
    {"optim.radam_start", "optim.name", "radam"},
    {"optim.trust_coefficient", "optim.name", "lars larc"},
    {"optim.larc_mode", "optim.name", "larc"},
    {"optim.grad_averaging", "optim.name", "novograd"},
    {"optim.no_decay", "", ""},
    {"optim.groups", "", ""},

    {"schedule.name", "", ""},
    {"schedule.warmup_steps", "", ""},
    {"schedule.warmup_init_lr", "schedule.name", kSchedulesWithALine},
    {"schedule.warmup_init_lr", "schedule.warmup", "constant"},
    // A floor under a rate that never falls.
    {"schedule.min_lr", "schedule.name",
     "piecewise step exponential polynomial linear cosine cosine_restarts inverse_sqrt noam "
     "tri_stage plateau"},
    {"schedule.total_steps", "schedule.name", "polynomial linear cosine tri_stage"},
    {"schedule.power", "schedule.name", "polynomial"},
    {"schedule.warmup", "", ""},
    {"schedule.begin_steps", "schedule.name",
     "step exponential polynomial linear cosine cosine_restarts tri_stage"},
    {"schedule.boundaries", "schedule.name", "piecewise"},
    {"schedule.multipliers", "schedule.name", "piecewise"},
    {"schedule.decay_steps", "schedule.name", "step exponential"},
    {"schedule.decay_rate", "schedule.name", "step exponential plateau"},
    {"schedule.staircase", "schedule.name", "exponential"},
    {"schedule.period_steps", "schedule.name", "cosine_restarts"},
    {"schedule.period_growth", "schedule.name", "cosine_restarts"},
    {"schedule.period_shrink", "schedule.name", "cosine_restarts"},
    {"schedule.d_model", "schedule.name", "noam"},
    {"schedule.max_lr", "schedule.name", "noam"},
    {"schedule.hold_steps", "schedule.name", "tri_stage"},
    {"schedule.final_scale", "schedule.name", "tri_stage"},
    {"schedule.patience", "schedule.name", "plateau"},
    {"schedule.threshold", "schedule.name", "plateau"},

    // "auto" is one of the others: loss_scaler_for() in precision.h.
    {"train.loss_scale.name", "", ""},
    {"train.loss_scale.init", "train.loss_scale.name", "static backoff fairseq logmax"},
    {"train.loss_scale.min", "train.loss_scale.name", "static backoff fairseq logmax"},
    {"train.loss_scale.max", "train.loss_scale.name", "static backoff fairseq logmax"},
    {"train.loss_scale.factor", "train.loss_scale.name", "backoff fairseq"},
    {"train.loss_scale.window", "train.loss_scale.name", "backoff fairseq"},
};

/// Is `word` one of the words of `words`?
constexpr bool has_word(std::string_view words, std::string_view word) {
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find(' ', begin), words.size());
    if (words.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace stretto::optim

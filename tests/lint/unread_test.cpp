#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "experiment/experiment_schema.h"
#include "families/translation/translation_options.h"
#include "tests/lint/sound_config.h"

namespace stretto::lint {
namespace {

using testing::codes_of;
using testing::kTensors;
using testing::lint_of;

/// What CF001 says of a configuration, as "key: reason; remedy".
std::vector<std::string> unread_in(const std::vector<Finding>& findings) {
  std::vector<std::string> told;
  for (const auto& finding : findings) {
    if (finding.code != "CF001") continue;
    told.push_back(finding.key + ": " + finding.reason + "; " + finding.fix);
  }
  return told;
}

TEST(Unread, EveryKeyThatNothingReadsIsNamed) {
  const auto unread = [](const std::vector<std::string>& overrides) {
    std::vector<std::string> keys;
    for (const auto& finding : lint_of(overrides)) {
      if (finding.code == "CF001") keys.push_back(finding.key);
    }
    return keys;
  };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(unread({"optim.name=adam", "optim.nesterov=true", "optim.momentum=0.5",
                    "optim.larc_mode=scale", "optim.trust_coefficient=0.1",
                    "optim.grad_averaging=true", "schedule.hold_steps=10", "schedule.power=3",
                    "schedule.staircase=true", "schedule.period_steps=3"}),
            (Keys{"optim.momentum", "optim.nesterov", "optim.trust_coefficient", "optim.larc_mode",
                  "optim.grad_averaging", "schedule.power", "schedule.staircase",
                  "schedule.period_steps", "schedule.hold_steps"}));
  EXPECT_EQ(unread({"optim.name=sgd", "optim.lr=0.1", "optim.beta1=0.5"}), Keys{"optim.beta1"});
  EXPECT_EQ(unread({"optim.l1=0.5", "optim.l2=0.5"}), (Keys{"optim.l1", "optim.l2"}));
  EXPECT_EQ(unread({"optim.reference_batch=1000"}), Keys{"optim.reference_batch"});
  EXPECT_EQ(unread({"schedule.name=constant", "schedule.min_lr=1e-6"}), Keys{"schedule.min_lr"});
  EXPECT_EQ(unread({"schedule.name=noam", "optim.lr=2", "schedule.warmup_init_lr=1e-5"}),
            Keys{"schedule.warmup_init_lr"});
  EXPECT_EQ(unread({"train.loss_scale.window=100"}), Keys{"train.loss_scale.window"});
  EXPECT_EQ(unread({"train.precision=mixed_fp16", "train.loss_scale.name=logmax",
                    "train.loss_scale.factor=4", "train.loss_scale.min=2"}),
            Keys{"train.loss_scale.factor"});
}

// Each of several encoders or decoders may read a key.
TEST(Unread, AKeyThatNoEncoderOfAListReadsIsNamed) {
  const auto unread = [](experiment::Experiment e) {
    translation_of(e).model.norm = "pre";
    std::string keys;
    for (const auto& finding : lint(e, {})) {
      if (finding.code == "CF001") keys += finding.key + ": " + finding.reason;
    }
    return keys;
  };
  experiment::Experiment e;
  translation_of(e).model.decoder = models::LstmDecoderOptions();
  translation_of(e).model.encoders = {models::LstmEncoderOptions(), models::LstmEncoderOptions()};
  EXPECT_NE(unread(e).find("model.norm: nothing reads it with model.encoders.0.name = lstm and "
                           "model.encoders.1.name = lstm and model.decoder.name = lstm"),
            std::string::npos)
      << unread(e);
  translation_of(e).model.encoders[1] = models::StackOptions();
  EXPECT_EQ(unread(e), "");
}

TEST(Unread, TheKeysOfPartsThatWereMeantAreNamed) {
  experiment::Experiment e;
  translation_of(e).model.dropout = 0.5;
  translation_of(e).model.encoder = models::LstmEncoderOptions();
  translation_of(e).model.decoder = models::LstmDecoderOptions();
  const auto told = unread_in(lint(e, {}));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("; leave it out, or give `model.encoder.dropout` and "
                         "`model.decoder.dropout` instead; it counts with model.encoder.name = "
                         "transformer"),
            std::string::npos)
      << told[0];
}

TEST(Unread, AKeyIsToldWhereItWouldCount) {
  const auto found = lint_of({"optim.trust_coefficient=0.1", "optim.epsilon=1e-6"});
  ASSERT_EQ(codes_of(found), std::vector<std::string>{"CF001"});
  EXPECT_EQ(found[0].place, "command line, `optim.trust_coefficient=0.1`");
  EXPECT_EQ(found[0].reason, "nothing reads it with optim.name = adam");
  EXPECT_EQ(found[0].fix, "leave it out; it counts with optim.name = lars or larc");
  const auto noam = lint_of({"schedule.name=noam", "optim.lr=2", "schedule.warmup_init_lr=1e-5"});
  ASSERT_EQ(codes_of(noam), std::vector<std::string>{"CF001"});
  EXPECT_EQ(noam[0].reason,
            "nothing reads it with schedule.name = noam and schedule.warmup = gradual");
  EXPECT_EQ(noam[0].fix,
            "leave it out; it counts with schedule.name = any but noam, or with schedule.warmup = "
            "constant");
}

TEST(Unread, AnAutomaticLossScaleIsNamedWithWhatItIs) {
  const auto found = lint_of({"train.loss_scale.init=64"});
  ASSERT_EQ(codes_of(found), std::vector<std::string>{"CF001"});
  EXPECT_EQ(found[0].reason,
            "nothing reads it with train.loss_scale.name = auto, which without fp16 is none");
  EXPECT_EQ(found[0].fix,
            "leave it out; it counts with train.loss_scale.name = static, backoff, fairseq or "
            "logmax");
}

TEST(Unread, KeysOfWhatIsOffAreNamedWithWhatTurnsItOn) {
  struct Row {
    std::vector<std::string> overrides;
    const char *key, *here, *elsewhere;
  };
  const std::string conv = "model.encoder.name=conv", lstm = "model.encoder.name=lstm";
  for (const auto& [overrides, key, here, elsewhere] : std::vector<Row>{
           {{"model.lora.alpha=8"},
            "model.lora.alpha",
            "model.lora.rank = 0",
            "model.lora.rank above 0"},
           {{"model.lora.dropout=0.1"},
            "model.lora.dropout",
            "model.lora.rank = 0",
            "model.lora.rank above 0"},
           {{"model.lora.maps=[\"*ffn*\"]"},
            "model.lora.maps",
            "model.lora.rank = 0",
            "model.lora.rank above 0"},
           {{"model.lora.train=[\"*norm*\"]"},
            "model.lora.train",
            "model.lora.rank = 0",
            "model.lora.rank above 0"},
           {{"model.adapter.activation=relu"},
            "model.adapter.activation",
            "model.adapter.dim = 0",
            "model.adapter.dim above 0"},
           {{"model.adapter.parts=[\"*ffn*\"]"},
            "model.adapter.parts",
            "model.adapter.dim = 0",
            "model.adapter.dim above 0"},
           {{"model.adapter.train=[\"*norm*\"]"},
            "model.adapter.train",
            "model.adapter.dim = 0",
            "model.adapter.dim above 0"},
           {{"optim.gradient_noise_decay=0.6"},
            "optim.gradient_noise_decay",
            "optim.gradient_noise = 0",
            "optim.gradient_noise above 0"},
           {{"optim.weight_noise_tensors=[\"encoder.*\"]"},
            "optim.weight_noise_tensors",
            "optim.weight_noise = 0",
            "optim.weight_noise above 0"},
           {{"train.ema_warmup=false"},
            "train.ema_warmup",
            "train.ema_decay = 0",
            "train.ema_decay above 0"},
           {{"train.forensics.max_rollbacks=1"},
            "train.forensics.max_rollbacks",
            "train.forensics.policy = skip",
            "train.forensics.policy = rollback"},
           {{"train.forensics.policy=stop", "train.forensics.rollback_lr_factor=0.1"},
            "train.forensics.rollback_lr_factor",
            "train.forensics.policy = stop",
            "train.forensics.policy = rollback"},
           {{"train.forensics.stop_after=3"},
            "train.forensics.stop_after",
            "train.forensics.policy = skip",
            "train.forensics.policy = stop or rollback"},
           {{"train.forensics.spike_policy=skip", "train.forensics.spike_zscore=0"},
            "train.forensics.spike_policy",
            "train.forensics.spike_zscore = 0",
            "train.forensics.spike_zscore above 0"},
           {{"decode.temperature=0.5"},
            "decode.temperature",
            "decode.method = beam",
            "decode.method = sample"},
           {{"decode.top_k=5"}, "decode.top_k", "decode.method = beam", "decode.method = sample"},
           {{"decode.top_p=0.5"}, "decode.top_p", "decode.method = beam", "decode.method = sample"},
           {{"decode.min_p=0.1"}, "decode.min_p", "decode.method = beam", "decode.method = sample"},
           {{"decode.seed=5"}, "decode.seed", "decode.method = beam", "decode.method = sample"},
           {{"decode.length_penalty=0.6", "decode.length_penalty_type=none"},
            "decode.length_penalty",
            "decode.length_penalty_type = none",
            "decode.length_penalty_type = fairseq or gnmt"},
           {{"model.positions=rotary", "model.max_positions=600"},
            "model.max_positions",
            "model.positions = rotary",
            "model.positions = learned, sinusoidal or marian"},
           {{conv, "model.encoder.positions=sinusoidal", "model.encoder.max_positions=600"},
            "model.encoder.max_positions",
            "model.encoder.positions = sinusoidal",
            "model.encoder.positions = learned"},
           {{"model.encoder.name=light_conv", "model.encoder.max_positions=600"},
            "model.encoder.max_positions",
            "model.encoder.positions = sinusoidal",
            "model.encoder.positions = learned"},
           {{conv, "model.encoder.scale_gradient=false"},
            "model.encoder.scale_gradient",
            "model.decoder.name = transformer",
            "model.decoder.name = conv"},
           {{lstm, "model.encoder.bidirectional=false", "model.encoder.bidirectional_layers=2"},
            "model.encoder.bidirectional_layers",
            "model.encoder.bidirectional = false",
            "model.encoder.bidirectional = true"},
           {{lstm, "model.encoder.dropout=0", "model.encoder.variational=true"},
            "model.encoder.variational",
            "model.encoder.dropout = 0",
            "model.encoder.dropout above 0"},
           {{"schedule.name=constant", "schedule.total_steps=9000"},
            "schedule.total_steps",
            "schedule.name = constant and schedule.warmup_ratio = 0",
            "schedule.name = polynomial, linear, cosine or tri_stage, or with "
            "schedule.warmup_ratio above 0"},
       }) {
    EXPECT_EQ(unread_in(lint_of(overrides)),
              std::vector<std::string>{std::string(key) + ": nothing reads it with " + here +
                                       "; leave it out; it counts with " + elsewhere})
        << key;
  }
}

TEST(Unread, KeysOfWhatIsOnAreNotNamed) {
  const std::string conv = "model.encoder.name=conv";
  for (const auto& overrides : std::vector<std::vector<std::string>>{
           {"model.lora.rank=4", "model.lora.alpha=8", "model.lora.dropout=0.1"},
           {"model.adapter.dim=4", "model.adapter.activation=relu"},
           {"optim.gradient_noise=0.1", "optim.gradient_noise_decay=0.6"},
           {"optim.weight_noise=0.1", "optim.weight_noise_tensors=[\"encoder.*\"]"},
           {"train.ema_decay=0.999", "train.ema_warmup=false"},
           {"train.forensics.policy=rollback", "train.forensics.max_rollbacks=1",
            "train.forensics.rollback_lr_factor=0.1", "train.forensics.stop_after=3"},
           {"train.forensics.spike_policy=skip"},
           {"decode.method=sample", "decode.temperature=0.5", "decode.top_k=5", "decode.top_p=0.5",
            "decode.min_p=0.1", "decode.seed=5", "decode.beam_size=3", "decode.length_penalty=0.6"},
           {"model.max_positions=600"},
           {"model.positions=learned", "model.max_positions=600"},
           {conv, "model.encoder.max_positions=600"},
           {conv, "model.encoder.scale_gradient=false", "model.decoder.name=conv"},
           {"model.encoder.name=lstm", "model.encoder.bidirectional_layers=2",
            "model.encoder.variational=true"},
           {"schedule.name=constant", "schedule.warmup_ratio=0.1", "schedule.total_steps=9000"},
           {"model.lora.alpha=16", "decode.temperature=1"},  // off, and as they are by default
       }) {
    EXPECT_EQ(unread_in(lint_of(overrides)), std::vector<std::string>{}) << overrides.front();
  }
}

TEST(Unread, AKeyWhoseDecidingKeyNothingReadsIsToldByWhatKeepsThatOne) {
  const std::string why =
      ": nothing reads it with model.encoder.name = lstm and model.decoder.name = lstm; leave it "
      "out; it counts with model.encoder.name = transformer, or with model.decoder.name = "
      "transformer";
  EXPECT_EQ(unread_in(lint_of({"model.encoder.name=lstm", "model.decoder.name=lstm",
                               "model.positions=learned", "model.max_positions=600"})),
            (std::vector<std::string>{"model.positions" + why, "model.max_positions" + why}));
}

TEST(Unread, AKeyThatADecoderOfSeveralReadsIsNotNamed) {
  experiment::Experiment e;
  auto& model = translation_of(e).model;
  model.encoder = models::ConvEncoderOptions{.scale_gradient = false};
  model.heads.resize(2);
  EXPECT_EQ(unread_in(lint(e, {})),
            std::vector<std::string>{
                "model.encoder.scale_gradient: nothing reads it with model.heads.0.decoder.name = "
                "transformer and model.heads.1.decoder.name = transformer; leave it out; it counts "
                "with model.decoder.name = conv"});
  model.heads[1].decoder = models::ConvDecoderOptions();
  EXPECT_EQ(unread_in(lint(e, {})), std::vector<std::string>{});
}

/// A key that says who reads it, and a key by its path: of the same part, or of what is around it.
using FindKey = std::function<const config::Key*(const std::string& path)>;
using LookAtReader =
    std::function<void(const config::Key&, const config::ReadWith&, const FindKey&)>;

/// Every declaration of a schema, of all parts that it may have, and of entries of its lists.
void each_reader(const config::Schema& schema, const FindKey& around, const LookAtReader& look) {
  const FindKey find = [&](const std::string& path) {
    const auto* key = schema.find(path);
    return key != nullptr || !around ? key : around(path);
  };
  for (const auto& key : schema.keys) {
    for (const auto& reader : key.readers) look(key, reader, find);
  }
  for (const auto& section : schema.switches) {
    for (const auto& part : section.alternatives) each_reader(*part.schema, find, look);
  }
  for (const auto& list : schema.lists) each_reader(*list.entry, find, look);
}

/// What is wrong with the values of a reader; empty = nothing.
std::string fault_of(const config::ReadWith& reader, const config::Key& deciding_key) {
  const auto& values = reader.values;
  if (std::holds_alternative<bool*>(deciding_key.value)) {
    const bool is_one = values.size() == 1 && (values[0] == "true" || values[0] == "false");
    return is_one ? "" : "a truth is true or false";
  }
  const auto* const* text = std::get_if<std::string*>(&deciding_key.value);
  if (text == nullptr) {
    if (!values.empty()) return "a number is 0 or not";
    return deciding_key.range.min == 0 && !deciding_key.range.min_open
               ? ""
               : "it is never 0, or negative";
  }
  if (values.empty()) return "values are missing";
  if (std::set<std::string>(values.begin(), values.end()).size() != values.size()) return "twice";
  const auto& choices = deciding_key.range.choices;
  for (const auto& value : values) {
    if (std::count(choices.begin(), choices.end(), value) != 1) return "never `" + value + "`";
  }
  return "";
}

TEST(DeclaredReadWith, NamesDecidingKeysAndValuesThatThereAre) {
  experiment::Experiment options;
  std::set<std::string> paths;
  each_reader(experiment::experiment_schema(options), nullptr,
              [&](const config::Key& key, const config::ReadWith& reader, const FindKey& find) {
                paths.insert(key.path);
                const std::string place = key.path + ": " + reader.deciding_key;
                const auto* deciding_key = find(reader.deciding_key);
                ASSERT_NE(deciding_key, nullptr) << place;
                EXPECT_EQ(fault_of(reader, *deciding_key), "") << place;
                // A chain of deciding keys ends.
                for (const auto& next : deciding_key->readers) {
                  const auto* last = find(next.deciding_key);
                  ASSERT_NE(last, nullptr) << place;
                  EXPECT_TRUE(last->readers.empty()) << place << ", " << next.deciding_key;
                }
              });
  EXPECT_GE(paths.size(), 80u);
  // Keys whose deciding key is in another section, in a part, in an entry, or in another task.
  for (const char* path : {"model.encoder.scale_gradient", "model.encoder.bidirectional_layers",
                           "model.heads.decoder.max_positions", "loss.class_weight_list"}) {
    EXPECT_TRUE(paths.contains(path)) << path;
  }
}

TEST(Unread, NoiseOnFrozenTensorsIsFoundWhereNoOtherTensorHasIt) {
  const auto keys = [](std::vector<std::string> overrides) {
    overrides.push_back("optim.weight_noise=0.1");
    std::vector<std::string> found;
    for (const auto& finding : lint_of(overrides, {.tensors = kTensors})) {
      EXPECT_EQ(finding.code, "CF004");
      found.push_back(finding.key + ": " + finding.reason.substr(0, finding.reason.find(" fr")));
    }
    return found;
  };
  using Keys = std::vector<std::string>;
  const std::string encoder = "train.freeze=[\"encoder.*\"]";
  EXPECT_EQ(keys({encoder}), Keys{}) << "the decoder has noise";
  EXPECT_EQ(keys({encoder, "optim.weight_noise_tensors=[\"*.up.weight\"]"}), Keys{});
  EXPECT_EQ(keys({encoder, "optim.weight_noise_tensors=[\"decoder.*\", \"encoder.*.bias\"]"}),
            Keys{"optim.weight_noise_tensors: `encoder.*.bias` matches"});
  // Without patterns it is for the matrices.
  EXPECT_EQ(keys({"train.freeze=[\"*.up.weight\", \"embedding*\"]"}),
            Keys{"optim.weight_noise: every matrix is"});
  // Without the names of the model it is not known.
  EXPECT_TRUE(
      lint_of({encoder, "optim.weight_noise=0.1", "optim.weight_noise_tensors=[\"encoder.*\"]"})
          .empty());
}

}  // namespace
}  // namespace stretto::lint

#include "families/text/folders/import_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiment/experiment.h"
#include "families/text/encoder_sections.h"
#include "families/text/folders/export_model.h"
#include "interchange/folder_tensors.h"
#include "interchange/import_folder.h"
#include "interchange/tokenizer_folder.h"
#include "tests/base/failure.h"
#include "tests/interchange/model_folder.h"
#include "tests/store/pickle_writer.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::ModelFolder;
using stretto::testing::PickleWriter;
using stretto::testing::TempDir;

const store::TensorView* find(const ImportedModel& model, const std::string& name) {
  const auto found = std::find_if(model.tensors.begin(), model.tensors.end(),
                                  [&](const auto& tensor) { return tensor.name == name; });
  return found == model.tensors.end() ? nullptr : &*found;
}

std::string refused(const ModelFolder& folder, const ImportOptions& options = {}) {
  return failure(ExitCode::kBadData, [&] { import_model(folder.dir->path(), options); }).what();
}

TEST(ImportModel, BertWithMaskedTokens) {
  auto folder = ModelFolder::bert("BertForMaskedLM").with_bert_masked_tokens();
  folder.add_layer("bert.pooler.dense", 4, 4);
  folder.shapes["cls.seq_relationship.weight"] = {2, 4};
  folder.write();
  const auto model = import_model(folder.dir->path());
  EXPECT_EQ(model.left_out,
            (std::vector<std::string>{"bert.pooler.dense.bias", "bert.pooler.dense.weight",
                                      "cls.seq_relationship.weight"}));
  const auto* qkv = find(model, "encoder.layers.0.self_attention.qkv.weight");
  ASSERT_NE(qkv, nullptr);
  EXPECT_EQ(qkv->shape, (std::vector<int64_t>{12, 4}));
  const std::string self = "bert.encoder.layer.0.attention.self.";
  EXPECT_EQ(qkv->bytes, folder.values_of(self + "query.weight") +
                            folder.values_of(self + "key.weight") +
                            folder.values_of(self + "value.weight"));
  EXPECT_NE(find(model, "head.bias"), nullptr);
  EXPECT_EQ(find(model, "head.pooler.weight"), nullptr);
  EXPECT_EQ(model.tokenizer->size(), 8);
}

TEST(ImportModel, RobertaLosesPositionsThatNothingReads) {
  auto folder = ModelFolder::roberta("RobertaForSequenceClassification");
  folder.add_layer("classifier.dense", 4, 4);
  folder.add_layer("classifier.out_proj", 2, 4);
  folder.write();
  const auto model = import_model(folder.dir->path());
  const auto* positions = find(model, "encoder.positions.weight");
  ASSERT_NE(positions, nullptr);
  EXPECT_EQ(positions->shape, (std::vector<int64_t>{16, 4}));
  EXPECT_EQ(positions->bytes,
            folder.values_of("roberta.embeddings.position_embeddings.weight").substr(2 * 16));
  EXPECT_EQ(model.assets.at("labels.json"), R"(["LABEL_0","LABEL_1"])");
  // The template of vocab.txt has a second segment, which the model has no vector for.
  EXPECT_EQ(find(model, "encoder.segments.weight")->shape, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(model.assets.at("tokenizer.json").find("\"type_id\": 1"), std::string::npos);
}

TEST(ImportModel, DistilBertHasNoSegments) {
  auto folder = ModelFolder::distilbert("DistilBertForQuestionAnswering");
  folder.add_layer("qa_outputs", 2, 4);
  folder.write();
  const auto model = import_model(folder.dir->path());
  const auto described = import_folder(folder.dir->path()).experiment;
  EXPECT_EQ(described.task.name(), "question_answering");
  EXPECT_EQ(described.eval.best_metric, "f1");
  EXPECT_EQ(find(model, "encoder.segments.weight"), nullptr);
  EXPECT_NE(find(model, "encoder.layers.0.ffn_residual.norm.bias"), nullptr);
}

TEST(ImportModel, AnEncoderHasAPoolerIfTheFolderHasOne) {
  auto folder = ModelFolder::bert("BertModel", "");
  folder.write();
  const auto without = import_folder(folder.dir->path());
  const auto sections = experiment::encoder_sections(without.experiment);
  EXPECT_EQ(sections.model->pooling, "mean");
  EXPECT_EQ(sections.model->head, "none");
  auto other = ModelFolder::bert("BertModel", "");
  other.add_layer("pooler.dense", 4, 4);
  other.write();
  EXPECT_NE(find(import_model(other.dir->path()), "head.pooler.weight"), nullptr);
}

TEST(ImportModel, AHeadMayBeLeftOut) {
  auto folder = ModelFolder::bert("BertForTokenClassification");
  folder.add_layer("classifier", 3, 4);
  folder.write();
  EXPECT_NE(refused(folder).find("BertForTokenClassification"), std::string::npos);
  const auto model = import_model(folder.dir->path(), {.encoder_only = true});
  EXPECT_EQ(model.left_out.size(), 2U);
}

TEST(ImportModel, MissingAndExtraTensorsAreListed) {
  auto folder = ModelFolder::bert("BertForMaskedLM").with_bert_masked_tokens();
  folder.shapes.erase("cls.predictions.bias");
  folder.shapes["adapter.weight"] = {2};
  folder.write();
  const std::string what = refused(folder);
  EXPECT_NE(what.find("missing: cls.predictions.bias"), std::string::npos) << what;
  EXPECT_NE(what.find("not in the model: adapter.weight"), std::string::npos) << what;
  EXPECT_EQ(refused(folder, {.allow_missing = true}).find("missing"), std::string::npos);
  const auto model =
      import_model(folder.dir->path(), {.ignore_extra = true, .allow_missing = true});
  EXPECT_EQ(model.missing, std::vector<std::string>{"head.bias"});
  EXPECT_EQ(model.left_out, std::vector<std::string>{"adapter.weight"});
}

TEST(ImportModel, NamesThatTheMessageHasNoRoomForAreItsDetails) {
  auto folder = ModelFolder::bert("BertModel");
  std::vector<std::string> of_extra;
  for (int i = 10; i < 35; ++i) {
    const std::string name = "adapter." + std::to_string(i) + ".weight";
    folder.shapes[name] = {2};
    of_extra.push_back("`" + name + "` is not in the model");
  }
  folder.write();
  const auto error = [&](const ImportOptions& options) {
    return failure(ExitCode::kBadData, [&] { import_model(folder.dir->path(), options); });
  };
  const std::string what = error({}).what();
  EXPECT_TRUE(what.ends_with("adapter.28.weight, adapter.29.weight, and 5 more")) << what;
  EXPECT_EQ(error({}).details(), of_extra);
  EXPECT_EQ(import_model(folder.dir->path(), {.ignore_extra = true}).left_out.size(), 25U);

  folder.config["num_hidden_layers"] = 3;  // two without their 16 tensors
  folder.dir->write("config.json", folder.config.dump());
  const std::string both = error({}).what();
  EXPECT_NE(both.find(", and 12 more; not in the model: adapter.10.weight"), std::string::npos)
      << both;
  const auto details = error({}).details();
  ASSERT_EQ(details.size(), 32U + 25U);
  EXPECT_TRUE(std::equal(of_extra.begin(), of_extra.end(), details.begin() + 32));
  const std::string last = "`bert.encoder.layer.2.output.LayerNorm.bias` is missing";
  EXPECT_EQ(std::count(details.begin(), details.begin() + 32, last), 1);
  EXPECT_EQ(error({.allow_missing = true}).details(), of_extra);
  EXPECT_EQ(error({.ignore_extra = true}).details().size(), 32U);
}

TEST(ImportModel, ATiedMatrixIsTheTable) {
  auto folder = ModelFolder::bert("BertForMaskedLM").with_bert_masked_tokens();
  folder.shapes["cls.predictions.decoder.weight"] = {8, 4};
  folder.write();
  EXPECT_NE(refused(folder).find("`cls.predictions.decoder.weight` is not "
                                 "`bert.embeddings.word_embeddings.weight` "
                                 "(`encoder.embedding.weight`), which config.json ties to it"),
            std::string::npos)
      << refused(folder);
  auto untied = ModelFolder::bert("BertForMaskedLM").with_bert_masked_tokens();
  untied.shapes["cls.predictions.decoder.weight"] = {8, 4};
  untied.config["tie_word_embeddings"] = false;
  untied.write();
  EXPECT_NE(find(import_model(untied.dir->path()), "head.output.weight"), nullptr);
}

TEST(ImportModel, TheVocabularyFitsTheWeights) {
  auto folder = ModelFolder::bert("BertModel");
  folder.dir->write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\n");
  folder.write();
  EXPECT_NE(refused(folder).find("does not fit the weights"), std::string::npos);
  EXPECT_NE(refused(folder).find("and `bert.embeddings.word_embeddings.weight` "
                                 "(`encoder.embedding.weight`) has 8 rows"),
            std::string::npos)
      << refused(folder);
  auto roomy = ModelFolder::bert("BertModel");
  roomy.dir->write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  roomy.write();
  const auto model = import_model(roomy.dir->path());
  EXPECT_EQ(model.rows_left_out, 2);
  // Six rows, and two of zeros up to a round number.
  const auto* table = find(model, "encoder.embedding.weight");
  EXPECT_EQ(table->shape, (std::vector<int64_t>{8, 4}));
  const auto theirs = roomy.values_of("bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(table->bytes, theirs.substr(0, 6 * 16) + std::string(2 * 16, '\0'));
}

TEST(ImportModel, TensorsAreNamedAsTheFolderDoes) {
  const std::vector<NamePair> names{{{"q", "k"}, "qk"}, {{"p"}, "positions", true}};
  EXPECT_EQ(name_in_folder(names, "qk"), "`q` + `k` (`qk`)");
  EXPECT_EQ(name_in_folder(names, "positions"),
            "`p` (`positions`, without rows that nothing reads)");
  EXPECT_EQ(name_in_folder(names, "new"), "`new`");
}

TEST(ImportModel, ValuesThatAreNotFiniteAreFoundInWhatIsRead) {
  auto folder = ModelFolder::bert("BertForMaskedLM").with_bert_masked_tokens();
  folder.add_layer("bert.pooler.dense", 4, 4);
  const auto found = [&] {
    folder.write();
    const auto model = import_model(folder.dir->path());
    return not_finite({.ours = model.tensors, .names = model.names});
  };
  EXPECT_EQ(found(), std::vector<std::string>{});
  const std::string value = "bert.encoder.layer.0.attention.self.value.bias";
  folder.last_values = {{"bert.pooler.dense.weight", std::nanf("")},  // nothing reads it
                        {"cls.predictions.bias", std::nanf("")},
                        {value, -std::numeric_limits<float>::infinity()}};
  EXPECT_EQ(found(), (std::vector<std::string>{value, "cls.predictions.bias"}));
}

TEST(ImportModel, ValuesThatAreNotFiniteAreToldInOneSentence) {
  EXPECT_EQ(not_finite_text({"a"}), "`a` has values that are not finite");
  EXPECT_EQ(not_finite_text({"a", "b"}), "`a` and 1 other tensor have values that are not finite");
  EXPECT_EQ(not_finite_text({"a", "b", "c"}),
            "`a` and 2 other tensors have values that are not finite");
}

TEST(ImportModel, ATokenizerOfAFractionOfTheRowsIsAnotherModels) {
  const std::string bytes(30000 * sizeof(float), '\1');
  const auto left_out = [&](int64_t ids, bool ignores_extra) {
    TensorList own;
    store::TensorView table{"t", store::DType::kF32, {30000, 1}, bytes};
    return fit_rows(table, {.ids = ids, .stated = 30000, .ignores_extra = ignores_extra}, own, "f");
  };
  EXPECT_EQ(left_out(28976, false), 1024);
  EXPECT_EQ(left_out(2000, true), 28000);
  const auto error = failure(ExitCode::kBadData, [&] { left_out(2000, false); });
  EXPECT_NE(std::string(error.what()).find("the tokenizer has 2,000 ids, and `t` has 30,000 rows"),
            std::string::npos)
      << error.what();
  EXPECT_NE(error.advice().find("--ignore-extra"), std::string::npos);
}

TEST(ImportModel, ShardsAreOneModel) {
  auto folder = ModelFolder::bert("BertForQuestionAnswering");
  folder.add_layer("qa_outputs", 2, 4);
  nlohmann::json map;
  ModelFolder first = folder, second = folder;
  for (const auto& [name, shape] : folder.shapes) {
    const bool is_first = name < "bert.encoder.layer.0.o";
    (is_first ? second : first).shapes.erase(name);
    map[name] = is_first ? "a.safetensors" : "b.safetensors";
  }
  first.write("a.safetensors");
  second.write("b.safetensors");
  folder.dir->write("model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  EXPECT_NE(find(import_model(folder.dir->path()), "head.output.weight"), nullptr);

  const auto refused_map = [&](const nlohmann::json& weight_map) {
    folder.dir->write("model.safetensors.index.json",
                      nlohmann::json{{"weight_map", weight_map}}.dump());
    return refused(folder);
  };
  auto other = map;
  other["qa_outputs.bias"] = "../b.safetensors";
  EXPECT_NE(refused_map(other).find("no file of this folder"), std::string::npos);
  other["qa_outputs.bias"] = "a.safetensors";
  EXPECT_NE(refused_map(other).find("`qa_outputs.bias`"), std::string::npos);
  other = map;
  other["more"] = "a.safetensors";
  EXPECT_NE(refused_map(other).find("has no `more`"), std::string::npos);
  EXPECT_NE(refused_map(nlohmann::json::object()).find("lists no tensors"), std::string::npos);
}

/// Some of a folder's tensors, as torch.save writes them.
std::string torch_file_of(const ModelFolder& folder, const std::vector<std::string>& names) {
  PickleWriter writer;
  std::vector<std::pair<std::string, std::string>> members{{"model/data.pkl", ""}};
  writer.raw("}(");
  for (const auto& name : names) {
    const std::string key = std::to_string(members.size() - 1), bytes = folder.values_of(name);
    const auto& shape = folder.shapes.at(name);
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * shape[i];
    const auto elements = static_cast<int64_t>(bytes.size() / sizeof(float));
    writer.text(name).tensor(key, elements, 0, shape, strides);
    members.emplace_back("model/data/" + key, bytes);
  }
  members.front().second = writer.raw("u.").bytes;
  return stretto::testing::zipped(members);
}

TEST(ImportModel, ShardsOfTorchAreOneModel) {
  auto folder = ModelFolder::bert("BertForQuestionAnswering");
  folder.add_layer("qa_outputs", 2, 4);
  folder.write();  // its config.json
  std::filesystem::remove(*folder.dir / "model.safetensors");
  std::vector<std::string> first, second;
  nlohmann::json map;
  // Query, key and value, which Stretto joins, are not in one file.
  for (const auto& [name, shape] : folder.shapes) {
    const bool is_first = name < "bert.encoder.layer.0.attention.self.q";
    (is_first ? first : second).push_back(name);
    map[name] = is_first ? "pytorch_model-00001-of-00002.bin" : "pytorch_model-00002-of-00002.bin";
  }
  folder.dir->write("pytorch_model-00001-of-00002.bin", torch_file_of(folder, first));
  folder.dir->write("pytorch_model-00002-of-00002.bin", torch_file_of(folder, second));
  const auto write_index = [&] {
    folder.dir->write("pytorch_model.bin.index.json", nlohmann::json{{"weight_map", map}}.dump());
  };
  write_index();
  const auto model = import_model(folder.dir->path());
  const std::string self = "bert.encoder.layer.0.attention.self.";
  EXPECT_EQ(find(model, "encoder.layers.0.self_attention.qkv.weight")->bytes,
            folder.values_of(self + "query.weight") + folder.values_of(self + "key.weight") +
                folder.values_of(self + "value.weight"));
  EXPECT_EQ(find(model, "head.output.weight")->bytes, folder.values_of("qa_outputs.weight"));

  map["more"] = "pytorch_model-00001-of-00002.bin";
  write_index();
  EXPECT_NE(refused(folder).find("pytorch_model-00001-of-00002.bin has no `more`"),
            std::string::npos);
  folder.write();  // safetensors come first
  EXPECT_NO_THROW(import_model(folder.dir->path()));
}

TEST(ImportModel, FoldersThatAreNotWholeAreRefused) {
  const auto folder = ModelFolder::bert("BertModel");
  failure(ExitCode::kUsage, [&] { import_model(folder.dir->path()); });  // no config.json
  folder.write();
  std::filesystem::remove(*folder.dir / "vocab.txt");
  failure(ExitCode::kUsage, [&] { import_model(folder.dir->path()); });
  folder.write_vocab();
  std::filesystem::remove(*folder.dir / "model.safetensors");
  failure(ExitCode::kUsage, [&] { import_model(folder.dir->path()); });
  failure(ExitCode::kUsage, [&] { import_model(*folder.dir / "elsewhere"); });
}

TEST(ImportModel, ALengthOfTextsThatIsWrongIsBlamedOnItsFile) {
  const auto folder = ModelFolder::bert("BertModel");
  folder.write();
  for (const char* wrong : {R"({"max_seq_length": "long"})", R"({"max_seq_length": 4})", "[]"}) {
    folder.dir->write("sentence_bert_config.json", wrong);
    const auto error = failure(ExitCode::kBadData, [&] { import_model(folder.dir->path()); });
    EXPECT_NE(error.advice().find("the sentence_bert_config.json"), std::string::npos)
        << error.message();
  }
}

int64_t longest_text_of(const std::filesystem::path& folder) {
  return experiment::text_sections(import_folder(folder).experiment).max_text_tokens;
}

TEST(ImportModel, TheLongestTextIsThatOfTheTokenizer) {
  const auto roberta = ModelFolder::roberta("RobertaModel");
  const auto bert = ModelFolder::bert("BertModel");
  for (const auto& folder : {bert, roberta}) {  // both have 16 positions that are read
    folder.write();
    EXPECT_EQ(longest_text_of(folder.dir->path()), 16);
    const auto with_length = [&](const std::string& length) {
      folder.dir->write("tokenizer_config.json", "{\"model_max_length\": " + length + "}");
      return longest_text_of(folder.dir->path());
    };
    EXPECT_EQ(with_length("12"), 12);
    EXPECT_EQ(with_length("8"), 8);
    // What means no bound, or none that a model could have.
    for (const char* none : {"1000000000000000019884624838656", "1e30", "18446744073709551615",
                             "18", "17", "7", "0", "-3", "12.5", "\"12\"", "null"}) {
      EXPECT_EQ(with_length(none), 16) << none;
    }
  }
}

TEST(ImportModel, TheLongestTextOfSentencesComesFirst) {
  const auto folder = ModelFolder::bert("BertModel");
  folder.write();
  folder.dir->write("tokenizer_config.json", R"({"model_max_length": 12})");
  folder.dir->write("sentence_bert_config.json", R"({"max_seq_length": 14})");
  EXPECT_EQ(longest_text_of(folder.dir->path()), 14);
  folder.dir->write("sentence_bert_config.json", R"({"max_seq_length": null})");
  EXPECT_EQ(longest_text_of(folder.dir->path()), 12);
}

TEST(ImportModel, ShapesThatDoNotFitAreRefused) {
  auto folder = ModelFolder::bert("BertModel");
  folder.shapes["bert.encoder.layer.0.attention.self.key.weight"] = {4, 3};
  folder.write();
  EXPECT_NE(refused(folder).find("[4, 3]"), std::string::npos);
}

// RobertaLMHead has GELU, whatever the layers have.
TEST(ImportModel, AHeadThatTransformersComputesOtherwiseIsRefused) {
  const auto with_activation = [](const char* name) {
    auto folder = ModelFolder::roberta("RobertaForMaskedLM");
    folder.add_layer("lm_head.dense", 4, 4);
    folder.add_norm("lm_head.layer_norm");
    folder.shapes["lm_head.bias"] = {8};
    folder.config["hidden_act"] = name;
    folder.write();
    return folder;
  };
  EXPECT_NO_THROW(import_model(with_activation("gelu").dir->path()));
  const auto folder = with_activation("relu");
  EXPECT_NE(refused(folder).find("RobertaForMaskedLM"), std::string::npos);
  EXPECT_NO_THROW(import_model(folder.dir->path(), {.encoder_only = true}));
}

// A tokenizer as its model takes it: what the template says of segments has to be there.
std::string of_segments(std::string tokenizer, int64_t num_segments) {
  const std::string second = "\"type_id\": 1";
  size_t found = num_segments > 1 ? std::string::npos : tokenizer.find(second);
  for (; found != std::string::npos; found = tokenizer.find(second)) {
    tokenizer[found + second.size() - 1] = '0';
  }
  return tokenizer;
}

TEST(ExportModel, GivesBackWhatWasImported) {
  auto bert = ModelFolder::bert("BertForMaskedLM").with_bert_masked_tokens();
  auto roberta = ModelFolder::roberta("RobertaForQuestionAnswering");
  roberta.add_layer("qa_outputs", 2, 4);
  auto distilbert = ModelFolder::distilbert("DistilBertForSequenceClassification");
  distilbert.add_layer("pre_classifier", 4, 4);
  distilbert.add_layer("classifier", 2, 4);
  for (const auto& folder : {bert, roberta, distilbert}) {
    folder.write();
    const auto model = import_model(folder.dir->path());
    const TempDir target;
    const auto description = model.config.description;
    export_model({.description = description,
                  .tokenizer = read_tokenizer_folder(folder.dir->path(), text::kBertKind),
                  .max_text_tokens = 16,
                  .tensors = model.tensors},
                 *model.config.architecture, target / "out");
    const store::SafetensorsFile file(target / "out/model.safetensors");
    EXPECT_EQ(file.tensors().size(), folder.shapes.size());
    for (const auto& [name, shape] : folder.shapes) {
      const auto* tensor = file.find(name);
      ASSERT_NE(tensor, nullptr) << name;
      EXPECT_EQ(tensor->shape, shape) << name;
      auto wanted = folder.values_of(name);
      if (name == "roberta.embeddings.position_embeddings.weight") {
        std::fill_n(wanted.begin(), 2 * 16, '\0');  // rows that nothing reads
      }
      EXPECT_EQ(tensor->bytes, wanted) << name;
    }
    const auto again = import_model(target / "out").assets;
    EXPECT_EQ(again.at("tokenizer.json"),
              of_segments(model.assets.at("tokenizer.json"), description.model.num_segments));
    EXPECT_EQ(again.size(), model.assets.size());
  }
}

TEST(ExportModel, KeepsTheLongestText) {
  auto folder = ModelFolder::bert("BertModel");
  folder.write();
  const auto model = import_model(folder.dir->path());
  const TempDir target;
  export_model({.description = model.config.description,
                .tokenizer = read_tokenizer_folder(folder.dir->path(), text::kBertKind),
                .max_text_tokens = 12,
                .tensors = model.tensors},
               kBert, target / "out");
  EXPECT_EQ(longest_text_of(target / "out"), 12);
}

TEST(ExportModel, TheNearestClassThatIsEqual) {
  ModelDescription description{.head = Head::kMaskedTokens};
  EXPECT_EQ(&choose_architecture(description, false, "auto"), &kBert);
  EXPECT_EQ(&choose_architecture(description, true, "auto"), &kRoberta);
  description.model.num_segments = 0;
  EXPECT_EQ(&choose_architecture(description, false, "auto"), &kDistilBert);
  EXPECT_EQ(&choose_architecture(description, false, "bert"), &kBert);
  description.model.norm = "pre";
  const auto error =
      failure(ExitCode::kUsage, [&] { choose_architecture(description, false, "auto"); });
  for (const char* part : {"BertForMaskedLM: model.norm", "RobertaForMaskedLM", "DistilBert"}) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(ExportModel, AdaptersAreRefusedByTheirKeyOnce) {
  ModelDescription description{.head = Head::kMaskedTokens};
  description.model.adapter.parts = {"*ffn*"};
  EXPECT_EQ(&choose_architecture(description, false, "auto"), &kBert) << "dim = 0";
  description.model.adapter.dim = 8;
  const auto error =
      failure(ExitCode::kUsage, [&] { choose_architecture(description, false, "auto"); });
  EXPECT_EQ(std::string(error.what()),
            "no class of transformers is equal to this model: model.adapter.dim = 8: an adapter is "
            "not linear, so that it cannot be merged into weights as LoRA is");
}

TEST(ExportModel, AFolderThatIsThereStays) {
  auto folder = ModelFolder::bert("BertModel");
  folder.write();
  const auto model = import_model(folder.dir->path());
  const ExportedModel exported{
      .description = model.config.description,
      .tokenizer = read_tokenizer_folder(folder.dir->path(), text::kBertKind),
      .max_text_tokens = 16,
      .tensors = model.tensors};
  const TempDir target;
  target.write("out/notes.txt", "mine");
  failure(ExitCode::kUsage, [&] { export_model(exported, kBert, target / "out"); });
  std::filesystem::remove(target / "out/notes.txt");
  export_model(exported, kBert, target / "out");
  EXPECT_TRUE(std::filesystem::exists(target / "out/config.json"));
  // A model without segments gets one that adds nothing.
  auto other = exported;
  other.description.model.num_segments = 0;
  std::erase_if(other.tensors, [](const auto& t) { return t.name == "encoder.segments.weight"; });
  export_model(other, kBert, target / "zero");
  const store::SafetensorsFile file(target / "zero/model.safetensors");
  EXPECT_EQ(file.find("embeddings.token_type_embeddings.weight")->bytes, std::string(16, '\0'));
}

TEST(ImportModel, ATemplateFitsIntoThePositions) {
  auto folder = ModelFolder::bert("BertModel");
  folder.write();
  auto spec = read_tokenizer_folder(folder.dir->path(), text::kBertKind);
  const auto special = spec.sequences.single.front();
  const auto write = [&](size_t specials) {
    auto& pair = spec.sequences.pair;
    while (pair.size() < specials + 2) pair.insert(pair.begin(), special);
    folder.dir->write("tokenizer.json", text::write_tokenizer_json(spec));
  };
  write(14);  // and two texts: all of its 16 positions
  EXPECT_NO_THROW(import_model(folder.dir->path()));
  write(15);
  const std::string problem = refused(folder);
  EXPECT_NE(problem.find("tokenizer.json: its template puts 15 tokens around two texts, so that 17 "
                         "are needed, and the model has 16 positions"),
            std::string::npos)
      << problem;
}

}  // namespace
}  // namespace stretto::interchange

#include "store/pickle_tensors.h"

#include <gtest/gtest.h>

#include "tests/base/failure.h"
#include "tests/base/held_memory.h"
#include "tests/store/pickle_writer.h"

namespace stretto::store {
namespace {

using stretto::testing::failure;
using stretto::testing::PickleWriter;

std::string refused_pickle(const std::string& bytes) {
  return failure(ExitCode::kBadData, [&] { parse_pickled_tensors(bytes, "f.bin"); }).what();
}

void expect_pickle_refused(const std::string& bytes, const std::string& reason) {
  const std::string what = refused_pickle(bytes);
  EXPECT_TRUE(what.starts_with("f.bin: ")) << what;
  EXPECT_NE(what.find(reason), std::string::npos) << "wanted: " << reason << "\ngot: " << what;
}

PickledTensor only_tensor(const PickleWriter& writer) {
  const auto dict = parse_pickled_tensors(writer.bytes, "f.bin");
  EXPECT_EQ(dict.num_bytes, writer.bytes.size());
  return dict.tensors.at(0);
}

PickleWriter dict_of(int64_t elements, int64_t offset, const std::vector<int64_t>& sizes,
                     const std::vector<int64_t>& strides) {
  PickleWriter writer;
  writer.raw("}(").text("w").tensor("0", elements, offset, sizes, strides).raw("u.");
  return writer;
}

TEST(PickleTensors, ReadsADictOfTensors) {
  PickleWriter writer;
  writer.global("collections", "OrderedDict").raw(")Rq").raw(std::string(1, '\0')).raw("(");
  writer.text("a").tensor("0", 6, 0, {2, 3}, {3, 1});
  writer.text("b").tensor("1", 9, 2, {3, 2}, {1, 3}, "HalfStorage");
  writer.raw("u}").text("_metadata").raw("}sb.");
  const auto dict = parse_pickled_tensors(writer.bytes, "f.bin");
  ASSERT_EQ(dict.tensors.size(), 2U);
  EXPECT_EQ(dict.tensors[0].name, "a");
  EXPECT_EQ(dict.tensors[0].dtype, DType::kF32);
  EXPECT_EQ(dict.tensors[0].sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(dict.tensors[0].is_contiguous());
  EXPECT_EQ(dict.tensors[1].dtype, DType::kF16);
  EXPECT_EQ(dict.tensors[1].storage, "1");
  EXPECT_EQ(dict.tensors[1].offset, 2);
  EXPECT_FALSE(dict.tensors[1].is_contiguous());
}

TEST(PickleTensors, AParameterIsItsTensor) {
  PickleWriter writer;
  writer.raw("}").text("w").global("torch._utils", "_rebuild_parameter").raw("(");
  writer.tensor("0", 4, 0, {4}, {1}).raw("\x88").global("collections", "OrderedDict");
  writer.raw(")RtRs.");
  EXPECT_EQ(only_tensor(writer).sizes, std::vector<int64_t>{4});
}

TEST(PickleTensors, AnyOtherNameIsRefusedByName) {
  expect_pickle_refused(PickleWriter().global("os", "system").text("ls").raw("\x85R.").bytes,
                        "asks for `os.system`");
  expect_pickle_refused(PickleWriter().text("builtins").text("eval").raw("\x93.").bytes,
                        "asks for `builtins.eval`");
  expect_pickle_refused(PickleWriter().global("torch.nn.modules.linear", "Linear").bytes,
                        "torch.nn.modules.linear.Linear");
}

TEST(PickleTensors, InstructionsThatMakeObjectsAreRefused) {
  for (const char opcode : {'i', 'o', '\x81', 'P', '\x82', 'I', 'S', '\x97'}) {
    expect_pickle_refused(PickleWriter().raw(std::string(1, opcode)).bytes, "instruction 0x");
  }
}

TEST(PickleTensors, KnownNamesAreNoFunctions) {
  // OrderedDict of a list, a storage that is called, a word in the place of a function.
  expect_pickle_refused(PickleWriter().global("collections", "OrderedDict").raw("]\x85R.").bytes,
                        "calls");
  expect_pickle_refused(PickleWriter().global("torch", "FloatStorage").raw(")R.").bytes, "calls");
  expect_pickle_refused(PickleWriter().text("os.system").raw(")R.").bytes, "a string in the place");
}

TEST(PickleTensors, WhatIsNoTensorIsNamed) {
  expect_pickle_refused(PickleWriter().raw("}").text("step").integer(3).raw("s.").bytes,
                        "`step` is a number, not a tensor");
  expect_pickle_refused(PickleWriter().raw("}").text("model").raw("}s.").bytes,
                        "`model` is a dict, not a tensor");
  expect_pickle_refused(PickleWriter().raw("}").integer(1).integer(3).raw("s.").bytes,
                        "as the name of a tensor");
  expect_pickle_refused(PickleWriter().raw("].").bytes, "holds a list");
}

// {epoch, score, optimizer, KEY: {w}}, as training programs save.
PickleWriter checkpoint_with(const std::string& key) {
  PickleWriter writer;
  writer.raw("}(").text("epoch").integer(3).text("best_prec1").raw("G").raw(std::string(8, '\0'));
  writer.text("optimizer").raw("}(").integer(0).tensor("7", 5, 0, {5}, {1}, "HalfStorage");
  return writer.raw("u").text(key).raw("}").text("w").tensor("0", 4, 0, {2, 2}, {2, 1}).raw("su.");
}

TEST(PickleTensors, TheWeightsOfACheckpointAreRead) {
  for (const char* key : {"state_dict", "model_state_dict", "model"}) {
    const auto writer = checkpoint_with(key);
    const auto dict = parse_pickled_tensors(writer.bytes, "f.bin");
    ASSERT_EQ(dict.tensors.size(), 1U) << key;
    EXPECT_EQ(dict.tensors[0].name, "w");
    EXPECT_EQ(dict.tensors[0].storage, "0");
    ASSERT_EQ(dict.storages.size(), 2U);
    EXPECT_EQ(dict.storages[0].key, "7");
    EXPECT_EQ(dict.storages[0].dtype, DType::kF16);
    EXPECT_EQ(dict.num_bytes, writer.bytes.size());
  }
  expect_pickle_refused(checkpoint_with("weights").bytes, "`epoch` is a number, not a tensor");
}

TEST(PickleTensors, ADictBesideTensorsThatHasTheirKeyIsTheOne) {
  PickleWriter writer;
  writer.raw("}(").text("other").tensor("1", 1, 0, {1}, {1}).text("state_dict").raw("}(");
  writer.text("w").integer(3).raw("uu.");
  expect_pickle_refused(writer.bytes, "`w` is a number");
}

TEST(PickleTensors, ATensorLiesWithinItsStorage) {
  EXPECT_EQ(only_tensor(dict_of(6, 0, {2, 3}, {3, 1})).num_elements(), 6);
  expect_pickle_refused(dict_of(6, 1, {2, 3}, {3, 1}).bytes, "beyond its storage");
  expect_pickle_refused(dict_of(6, 0, {2, 3}, {4, 1}).bytes, "beyond its storage");
  expect_pickle_refused(dict_of(6, -1, {2, 3}, {3, 1}).bytes, "makes no sense");
  expect_pickle_refused(dict_of(6, 0, {2, -3}, {3, 1}).bytes, "makes no sense");
  expect_pickle_refused(dict_of(6, 0, {2, 3}, {-3, 1}).bytes, "makes no sense");
  expect_pickle_refused(dict_of(6, 0, {2, 3}, {3}).bytes, "makes no sense");
  expect_pickle_refused(dict_of(-6, 0, {2, 3}, {3, 1}).bytes, "negative size");
}

TEST(PickleTensors, HugeShapesDoNotOverflow) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  expect_pickle_refused(dict_of(6, 0, {kHuge, kHuge}, {0, 0}).bytes, "makes no sense");
  expect_pickle_refused(dict_of(6, 0, {kHuge}, {0}).bytes, "repeats its storage");
  expect_pickle_refused(dict_of(6, 0, {3}, {kHuge}).bytes, "beyond its storage");
  expect_pickle_refused(dict_of(6, INT64_MAX, {3}, {1}).bytes, "beyond its storage");
  expect_pickle_refused(
      dict_of(6, 0, std::vector<int64_t>(17, 1), std::vector<int64_t>(17, 1)).bytes,
      "16 dimensions");
  EXPECT_EQ(only_tensor(dict_of(0, 0, {kHuge, 0}, {1, 1})).num_elements(), 0);
}

TEST(PickleTensors, MalformedProgramsAreRefused) {
  expect_pickle_refused("", "ends too early");
  expect_pickle_refused("\x80\x09.", "protocol");
  expect_pickle_refused(PickleWriter().raw("X\xff\xff\xff\xff").bytes, "ends too early");
  expect_pickle_refused(PickleWriter().raw("X\x01").raw(std::string(3, '\0')).raw("\xff.").bytes,
                        "not UTF-8");
  expect_pickle_refused(PickleWriter().raw(".").bytes, "leaves values");
  expect_pickle_refused(PickleWriter().raw("t").bytes, "mark is missing");
  expect_pickle_refused(PickleWriter().raw("(R").bytes, "stack is empty");
  expect_pickle_refused(PickleWriter().raw("h\x05.").bytes, "never noted");
  expect_pickle_refused(PickleWriter().raw("}(Nu.").bytes, "key without a value");
  expect_pickle_refused(PickleWriter().raw("c" + std::string(5000, 'a')).bytes, "without an end");
  expect_pickle_refused(PickleWriter().raw(std::string(100, '(')).bytes, "nested deeper");
  expect_pickle_refused(PickleWriter().raw(std::string((1 << 20) + 1, 'N')).bytes, "too many");
}

TEST(PickleTensors, ADictThatHoldsItselfIsNoTensor) {
  PickleWriter writer;
  writer.raw("}q").raw(std::string(1, '\0')).text("a").raw("h").raw(std::string(1, '\0')).raw("s.");
  expect_pickle_refused(writer.bytes, "`a` is a dict");
}

TEST(PickleTensors, ANameStandsOnce) {
  PickleWriter writer;
  writer.raw("}(").text("w").tensor("0", 1, 0, {1}, {1}).text("w").tensor("0", 1, 0, {1}, {1});
  expect_pickle_refused(writer.raw("u.").bytes, "`w` stands twice");
}

TEST(PickleTensors, AKeyIsNoText) {
  PickleWriter writer;
  writer.raw("}").text("w").tensor(std::string(1000, 'k'), 4, 0, {4}, {1}).raw("s.");
  EXPECT_EQ(only_tensor(writer).storage.size(), 1000U);
  expect_pickle_refused(PickleWriter().storage(std::string(1001, 'k'), 4).bytes,
                        "the key of a storage is longer than 1,000 bytes");
}

TEST(PickleTensors, TextThatIsAskedForOftenIsNotCopied) {
  const std::string text(1 << 20, 'x');
  PickleWriter list;
  list.raw("](").text(text).raw("\x94");
  for (int i = 0; i < 10'000; ++i) list.raw(std::string("h\0", 2));
  list.raw("e.");
  const size_t before = stretto::testing::held_memory();
  const auto plain = parse_pickled_plain(list.bytes, "f.bin");
  EXPECT_EQ(plain.strings.size(), 10'001U);
  EXPECT_LT(stretto::testing::held_memory() - before, text.size());
}

// One tensor of 16 dimensions, which a pickle of 4 MB names as often as it can.
TEST(PickleTensors, ATensorWithManyNamesIsRefusedBeforeMemoryIsFull) {
  const std::vector<int64_t> ones(16, 1);
  PickleWriter names;
  names.raw("}(").text("first").tensor("0", 1, 0, ones, ones).raw("\x94");
  for (int i = 0; i < 450'000; ++i) {
    names.raw(std::string("\x8c\x06") + std::to_string(100'000 + i)).raw(std::string("h\0", 2));
  }
  expect_pickle_refused(names.raw("u.").bytes, "what its pickle asks for would take more than");
}

}  // namespace
}  // namespace stretto::store

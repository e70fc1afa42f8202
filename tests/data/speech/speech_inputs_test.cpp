#include "data/speech/speech_inputs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/speech/speech_files.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/images/archives.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;
using Names = std::vector<std::string>;
using Holder = SpeechInput::Holder;

class SpeechInputsTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes = "x") const {
    return folder_.write(name, bytes);
  }
  std::string below(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<SpeechInput> inputs(const Names& names) const {
    Names paths;
    for (const auto& name : names) paths.push_back(below(name));
    return speech_inputs(options_, "data.train", paths);
  }
  SpeechFormat format(const std::string& name) const { return inputs({name}).at(0).format; }

  testing::TempDir folder_;
  SpeechDataOptions options_;
};

TEST_F(SpeechInputsTest, FoldersAreToldByTheirFiles) {
  put("libri/1/2/1-2.trans.txt");
  put("libri/1/2/1-2-0.flac");
  put("lj/metadata.csv", "a|b|c");
  put("lj/wavs/a.wav");
  put("books/x/metadata.csv");
  put("books/x/wavs/1.wav");
  put("books/y/metadata.csv");
  put("beside/1.wav");
  put("beside/1.txt");
  put("words/yes/1.wav");
  put("words/no/1.wav");
  put("kaldi/wav.scp", "u a.wav");
  EXPECT_EQ(format("libri"), SpeechFormat::kLibriSpeech);
  EXPECT_EQ(format("lj"), SpeechFormat::kLjSpeech);
  EXPECT_EQ(format("books"), SpeechFormat::kMAilabs);
  EXPECT_EQ(format("beside"), SpeechFormat::kTextFiles);
  EXPECT_EQ(format("words"), SpeechFormat::kClassFolders);
  EXPECT_EQ(format("kaldi"), SpeechFormat::kKaldi);
  options_.name_pattern = "{text}_{speaker}";
  EXPECT_EQ(format("words"), SpeechFormat::kLabelledNames);
}

TEST_F(SpeechInputsTest, FilesAreToldByContentAndEnding) {
  put("a.csv", "wav_filename,wav_filesize,transcript\n");
  put("b.csv", "\nLJ1|text\n");
  put("c.jsonl", "{}");
  put("d.bin", test::tar_of({{"1/1.trans.txt", "1 x"}}));
  put("kaldi/wav.scp", "u a.wav");
  EXPECT_EQ(format("a.csv"), SpeechFormat::kManifest);
  EXPECT_EQ(format("b.csv"), SpeechFormat::kLjSpeech);
  EXPECT_EQ(format("c.jsonl"), SpeechFormat::kManifest);
  const auto archive = inputs({"d.bin"}).at(0);
  EXPECT_EQ(archive.holder, Holder::kArchive);
  EXPECT_TRUE(archive.is_undecided);
  const auto kaldi = inputs({"kaldi/wav.scp"}).at(0);
  EXPECT_EQ(kaldi.format, SpeechFormat::kKaldi);
  EXPECT_EQ(kaldi.path, below("kaldi"));
}

TEST_F(SpeechInputsTest, AFolderOfArchivesStandsForThem) {
  put("all/b.tar", test::tar_of({{"1/1.trans.txt", "1 x"}}));
  put("all/a.tar", test::tar_of({{"2/2.trans.txt", "2 x"}}));
  const auto both = inputs({"all"});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].path, below("all/a.tar"));
}

TEST_F(SpeechInputsTest, WhatCannotBeToldIsRefused) {
  put("empty/readme.txt");
  put("one/1.wav");
  put("a.wav");
  put("a.xyz");
  put("a.csv", "path,text\n");
  for (const char* name : {"missing", "empty", "one", "a.wav", "a.xyz"}) {
    failure(ExitCode::kUsage, [&] { inputs({name}); });
  }
  failure(ExitCode::kUsage, [&] { inputs({"a.csv", "a.csv"}); });
  options_.format = "librispeech";
  failure(ExitCode::kUsage, [&] { inputs({"a.csv"}); });
  options_.format = "kaldi";
  failure(ExitCode::kUsage, [&] { inputs({"one"}); });
  options_.format = "manifest";
  failure(ExitCode::kUsage, [&] { inputs({"one"}); });
}

TEST_F(SpeechInputsTest, FilesOfDataHaveTheirKinds) {
  put("libri/1/2/1-2.trans.txt", "1-2-0 x\n1-2-1 y\n");
  put("libri/1/2/1-2-0.flac");
  put("a.csv", "path,text\nthere.wav,one\nthere.wav,two\ngone.wav,three\n");
  put("there.wav");
  put("kaldi/wav.scp", "u ../there.wav\n");
  put("kaldi/text", "u one\n");
  put("d.tar", test::tar_of({{"1/1.trans.txt", "1 x"}}));
  std::vector<DataFile> files;
  for (const char* name : {"libri", "a.csv", "kaldi", "d.tar", "missing"}) {
    files.push_back({.key = "data.train", .path = below(name)});
  }
  files.push_back({.key = "data.audio_dir", .path = below("libri")});
  const auto result = speech_data_files(options_, files);
  std::vector<std::pair<std::string, DataKind>> kinds;
  for (const auto& file : result) kinds.emplace_back(file.path, file.kind);
  EXPECT_EQ(kinds, (std::vector<std::pair<std::string, DataKind>>{
                       {below("libri"), DataKind::kTree},
                       {below("a.csv"), DataKind::kManifest},
                       {below("kaldi/wav.scp"), DataKind::kManifest},
                       {below("kaldi/text"), DataKind::kText},
                       {below("d.tar"), DataKind::kBytes},
                       {below("missing"), DataKind::kText}}));
  Names named;
  result.at(1).rows(result.at(1).path, [&](const NamedFile& file) { named.push_back(file.path); });
  EXPECT_EQ(named, Names{below("there.wav")}) << "each once, and what is missing is a bad sample";
  EXPECT_EQ(count_utterances(options_, {below("a.csv")}), 3);
  EXPECT_EQ(count_utterances(options_, {below("libri")}), 1);
  EXPECT_FALSE(count_utterances(options_, {below("d.tar")}).has_value());
}

}  // namespace
}  // namespace stretto::data

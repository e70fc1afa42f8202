#include "data/images/archive_index.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "data/archives/member_names.h"
#include "data/labelled/labels.h"
#include "image/image_file.h"

namespace stretto::data {
namespace {

constexpr size_t kMostLabelBytes = size_t{1} << 20;  // of a file that has a label
constexpr size_t kMostNameBytes = 1000;              // of a label
constexpr int64_t kMembersLookedAt = 100;
constexpr const char* kMemberAdvice =
    "pack the pictures as regular files with relative names, or leave this one out";
constexpr const char* kShardAdvice =
    "a sample of WebDataset has one picture, KEY.jpg, and its label beside it, KEY.cls";

bool is_label_field(std::string_view field) {
  return field == "cls" || field == "json" || field == "txt";
}

/// What both kinds of archives share: members that can be used at all.
class Indexing {
 public:
  Indexing(TarReader& archive, const std::string& name, const ArchiveRules& rules, BadSamples& bad)
      : archive_(archive), name_(name), rules_(rules), bad_(bad) {}

  ArchiveIndex read() {
    TarMember member;
    while (archive_.next(member)) {
      try {
        take(member);
      } catch (const SampleError& error) {
        bad_.add(error);
      }
    }
    end();
    bad_.end_file();
    return std::move(index_);
  }

 protected:
  ~Indexing() = default;
  virtual void take_file(const TarMember& member, std::string path) = 0;
  virtual void end() {}

  [[noreturn]] void refuse(std::string_view path, const std::string& what,
                           const char* advice = kMemberAdvice) const {
    throw SampleError(name_, ": " + printable(path, kMostNameBytes) + ": " + what, advice);
  }

  /// The bytes of the last member. Throws a SampleError for too many.
  std::string bytes_of(const TarMember& member, std::string_view path, size_t most) const {
    if (member.size > most) refuse(path, "is larger than " + human_bytes(most));
    return archive_.read_all(member);
  }

  /// What the header of a picture says. Throws a SampleError.
  ImageFacts facts_of(const std::string& bytes, std::string_view path) const {
    const std::string shown = printable(path, kMostNameBytes);
    try {
      const auto info = image::image_info(bytes, shown);
      return {.bytes = bytes.size(),
              .hash = xxh3_64(bytes),
              .height = info.height,
              .width = info.width};
    } catch (const Error& error) {
      if (error.code() != ExitCode::kBadData) throw;
      throw SampleError(name_, ": " + std::string(error.what()), error.advice());
    }
  }

  uint64_t place_of(const TarMember& member, const std::string& bytes) const {
    return rules_.keep ? rules_.keep(bytes) : member.offset;
  }

  TarReader& archive_;
  const std::string& name_;
  const ArchiveRules& rules_;
  BadSamples& bad_;
  ArchiveIndex index_;

 private:
  void take(const TarMember& member) {
    std::string fault;
    std::string path = member_path(member.name, fault);
    if (member.kind == TarMember::Kind::kFolder) {
      // The archive's own folder, "./", has no name; what lies in a folder says what is wrong.
      if (fault.empty() && !is_hidden_path(path)) index_.folders.push_back(std::move(path));
      return;
    }
    if (!fault.empty()) refuse(member.name, fault);
    if (is_hidden_path(path)) {
      ++index_.hidden;
      return;
    }
    if (member.kind == TarMember::Kind::kOther) refuse(path, "is " + member.other);
    if (!paths_.insert(xxh3_64(path)).second) {
      refuse(path, "comes twice in the archive", "pack each picture once");
    }
    take_file(member, std::move(path));
  }

  std::unordered_set<uint64_t> paths_;  ///< hashes of those that came
};

class TarIndexing final : public Indexing {
 public:
  using Indexing::Indexing;

 private:
  void take_file(const TarMember& member, std::string path) override {
    if (folder_of_path(path).empty()) {
      refuse(path, "lies in no folder of a class", "each class has a folder with its pictures");
    }
    const std::string bytes = bytes_of(member, path, image::kMaxImageBytes);
    const ImageFacts facts = facts_of(bytes, path);
    std::string folder(folder_of_path(path));
    index_.images.push_back({.path = std::move(path),
                             .label = std::move(folder),
                             .offset = place_of(member, bytes),
                             .facts = facts});
  }
  void end() override {
    std::sort(index_.images.begin(), index_.images.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
  }
};

class ShardIndexing final : public Indexing {
 public:
  using Indexing::Indexing;

 private:
  /// The members of one key, which lie one behind the other.
  struct Group {
    std::string key;
    std::optional<ArchivedImage> image;
    std::map<std::string, std::string> labels;  ///< by the field
    std::optional<SampleError> fault;           ///< the first one
  };

  void take_file(const TarMember& member, std::string path) override {
    const ShardName name = shard_name(path);
    if (!group_ || group_->key != name.key) begin(std::string(name.key));
    try {
      take_field(member, path, name.field);
    } catch (const SampleError& error) {
      if (!group_->fault) group_->fault = error;
    }
  }

  void take_field(const TarMember& member, const std::string& path, const std::string& field) {
    if (is_label_field(field)) {
      group_->labels[field] = bytes_of(member, path, kMostLabelBytes);
    } else if (is_picture_field(field)) {
      if (group_->image) refuse(path, "is a second picture of its key", kShardAdvice);
      const std::string bytes = bytes_of(member, path, image::kMaxImageBytes);
      const ImageFacts facts = facts_of(bytes, path);
      group_->image = ArchivedImage{
          .path = path, .label = {}, .offset = place_of(member, bytes), .facts = facts};
    }
  }

  void begin(std::string key) {
    close();
    group_.emplace();
    if (!keys_.insert(xxh3_64(key)).second) {
      group_->fault = SampleError(
          name_, ": " + printable(key, kMostNameBytes) + ": this key comes back behind others",
          "the files of a key stand one behind the other");
    }
    group_->key = std::move(key);
  }

  void close() {
    if (!group_) return;
    Group group = std::move(*group_);
    group_.reset();
    try {
      if (group.fault) throw SampleError(*group.fault);
      if (!group.image && !group.labels.contains("cls")) return;  // no sample: a list, a text
      if (!group.image) refuse(group.key, "has a label and no picture", kShardAdvice);
      group.image->label = label_of(group);
      index_.images.push_back(std::move(*group.image));
    } catch (const SampleError& error) {
      bad_.add(error);
    }
  }
  void end() override { close(); }

  std::string label_of(const Group& group) const {
    std::string label;
    if (const auto found = group.labels.find("cls"); found != group.labels.end()) {
      label = trim(found->second);
    } else if (const auto json = group.labels.find("json"); json != group.labels.end()) {
      label = label_in(json->second, group.key);
    }
    if (const auto found = group.labels.find("txt"); label.empty() && found != group.labels.end()) {
      label = trim(found->second);
    }
    if (label.empty()) refuse(group.key, "has a picture and no label", kShardAdvice);
    if (!is_one_line(label) || label.size() > kMostNameBytes || !is_valid_utf8(label)) {
      refuse(group.key, "its label is no name on one line", kShardAdvice);
    }
    return label;
  }

  /// The label in KEY.json; empty where it has none.
  std::string label_in(const std::string& text, const std::string& key) const {
    nlohmann::json json;
    try {
      json = parse_json(text, printable(key, kMostNameBytes) + ".json", kMostLabelBytes);
    } catch (const Error& error) {
      if (error.code() != ExitCode::kBadData) throw;
      throw SampleError(name_, ": " + std::string(error.what()), error.advice());
    }
    const nlohmann::json* value = &json;
    if (json.is_object()) {
      const auto found = json.find(rules_.label);
      if (found == json.end()) return "";
      value = &*found;
    }
    if (value->is_string()) return trim(value->get<std::string>());
    if (value->is_number()) return value->dump();
    refuse(key, "its label in JSON is neither text nor a number", kShardAdvice);
  }

  std::optional<Group> group_;
  std::unordered_set<uint64_t> keys_;  ///< hashes of those that came
};

}  // namespace

ArchiveIndex index_archive(TarReader& archive, const std::string& name, const ArchiveRules& rules,
                           BadSamples& bad) {
  if (rules.kind == ArchiveKind::kShard) return ShardIndexing(archive, name, rules, bad).read();
  return TarIndexing(archive, name, rules, bad).read();
}

ArchiveKind kind_of_archive(TarReader& archive) {
  std::unordered_set<std::string> pictures, labels;
  TarMember member;
  for (int64_t i = 0; i < kMembersLookedAt && archive.next(member); ++i) {
    std::string fault;
    const std::string path = member_path(member.name, fault);
    if (member.kind != TarMember::Kind::kFile || !fault.empty() || is_hidden_path(path)) continue;
    const auto [view, field] = shard_name(path);
    const std::string key(view);
    if (is_picture_field(field)) {
      if (labels.contains(key)) return ArchiveKind::kShard;
      pictures.insert(key);
    } else if (is_label_field(field)) {
      if (pictures.contains(key)) return ArchiveKind::kShard;
      labels.insert(key);
    }
  }
  return ArchiveKind::kTar;
}

}  // namespace stretto::data

#include "store/pickle_tensors.h"

#include <array>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/allowance.h"
#include "base/error.h"
#include "base/text.h"

namespace stretto::store {
namespace {

constexpr size_t kMaxDepth = 64;                // marks that are open at once
constexpr size_t kMaxDims = 16;                 // of a tensor
constexpr size_t kMaxWord = 1000;               // bytes of a module, a name or a storage's key
constexpr size_t kMaxValues = size_t{1} << 20;  // of one pickle

enum class Kind : uint8_t {
  kNone,
  kBool,
  kInteger,
  kLong,  // of more than 64 bits, as bytes
  kFloat,
  kString,
  kTuple,
  kList,
  kDict,
  kGlobal,
  kStorage,
  kTensor,
};

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 12> kNames{
      "None",      "a bool",  "a number", "a number", "a number",
      "a string",  "a tuple", "a list",   "a dict",   "a class or function",
      "a storage", "a tensor"};
  return kNames[static_cast<size_t>(kind)];
}

/// Values refer to others by number, so that a pickle that contains itself needs no special case.
struct Value {
  Kind kind = Kind::kNone;
  int64_t integer = 0;          // kInteger, kBool; elements of kStorage; which one of kTensor
  std::string_view text;        // kString, kLong; "module.name" of kGlobal; key of kStorage
  std::vector<uint32_t> items;  // kTuple, kList; keys and values of kDict in turn
  DType dtype = DType::kF32;    // kStorage
};

struct StorageClass {
  std::string_view name;
  DType dtype;
};
constexpr std::array<StorageClass, 10> kStorages{{
    {"torch.FloatStorage", DType::kF32},
    {"torch.HalfStorage", DType::kF16},
    {"torch.BFloat16Storage", DType::kBF16},
    {"torch.DoubleStorage", DType::kF64},
    {"torch.LongStorage", DType::kI64},
    {"torch.IntStorage", DType::kI32},
    {"torch.ShortStorage", DType::kI16},
    {"torch.CharStorage", DType::kI8},
    {"torch.ByteStorage", DType::kU8},
    {"torch.BoolStorage", DType::kBool},
}};
// Where checkpoints of training programs have the weights; the first that is there counts.
constexpr std::array<std::string_view, 3> kWeightKeys{"state_dict", "model_state_dict", "model"};
constexpr std::string_view kOrderedDict = "collections.OrderedDict";
constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor";
constexpr std::string_view kRebuildTensor2 = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils._rebuild_parameter";

std::optional<DType> dtype_of_storage(std::string_view name) {
  for (const auto& known : kStorages) {
    if (known.name == name) return known.dtype;
  }
  return std::nullopt;
}

/// The name as it stands in this program, which outlives every pickle.
std::optional<std::string_view> find_global(std::string_view name) {
  for (const auto known : {kOrderedDict, kRebuildTensor, kRebuildTensor2, kRebuildParameter}) {
    if (name == known) return known;
  }
  for (const auto& known : kStorages) {
    if (known.name == name) return known.name;
  }
  return std::nullopt;
}

/// Elements of these sizes; nothing when a size is negative or there are more than fit.
std::optional<int64_t> product(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  bool is_empty = false;
  for (const int64_t size : sizes) {
    if (size < 0) return std::nullopt;
    is_empty = is_empty || size == 0;
    if (size > 0 && __builtin_mul_overflow(count, size, &count)) return std::nullopt;
  }
  return is_empty ? 0 : count;
}

/// Number of the last element of a tensor in its storage.
std::optional<int64_t> last_element(const PickledTensor& tensor) {
  int64_t last = tensor.offset;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return std::nullopt;
    }
  }
  return last;
}

class Machine {
 public:
  Machine(std::string_view bytes, std::string_view where)
      : bytes_(bytes), where_(where), allowance_(std::string(where), bytes.size()) {
    values_.reserve(64);
  }

  /// Runs to the end of the pickle; what it leaves is on the stack alone.
  const Value& run() {
    while (!step(byte())) {
    }
    if (stack_.size() != 1 || !marks_.empty()) malformed("the end leaves values on the stack");
    return values_[stack_.back()];
  }

  const Value& value(uint32_t number) const { return values_[number]; }
  const PickledTensor& tensor(const Value& value) const {
    return tensors_[static_cast<size_t>(value.integer)];
  }
  std::vector<PickledStorage> take_storages() { return std::move(storages_); }
  size_t position() const { return at_; }
  /// Reserves for a vector that grows by doubling.
  void hold(uint64_t num_bytes) { allowance_.take(2 * num_bytes, "what its pickle asks for"); }
  void hold(const PickledTensor& tensor) {
    hold(sizeof(tensor) + (tensor.sizes.size() + tensor.strides.size()) * sizeof(int64_t));
  }

  [[noreturn]] void malformed(const std::string& what) const {
    throw Error(
        ExitCode::kBadData,
        std::string(where_) + ": not a valid pickle: " + what + ", at byte " + std::to_string(at_),
        "the file is damaged, cut off or of another kind");
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ExitCode::kBadData, std::string(where_) + ": " + what,
                "a pickle may run any program, so that tensors alone are read: save the weights "
                "as safetensors, or only `model.state_dict()`");
  }

 private:
  // Reading the program.
  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) malformed("it ends too early");
    at_ += static_cast<size_t>(count);
    return bytes_.substr(at_ - static_cast<size_t>(count), static_cast<size_t>(count));
  }
  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }
  uint64_t unsigned_of(size_t count) {
    const std::string_view taken = take(count);
    uint64_t value = 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(taken[i]);
    return value;
  }
  std::string_view word() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos || end - at_ > kMaxWord) malformed("a name without an end");
    const std::string_view text = take(end - at_);
    at_ += 1;
    return text;
  }

  // The stack.
  uint32_t add(Value value) {
    if (values_.size() == kMaxValues) malformed("too many values");
    hold(sizeof(Value) + value.items.size() * sizeof(uint32_t));
    values_.push_back(std::move(value));
    return static_cast<uint32_t>(values_.size() - 1);
  }
  void push(Value value) { stack_.push_back(add(std::move(value))); }
  void push_integer(int64_t value) { push({.kind = Kind::kInteger, .integer = value}); }
  void push_text(uint64_t count) {
    const std::string_view text = take(count);
    if (!is_valid_utf8(text)) malformed("a string that is not UTF-8");
    push({.kind = Kind::kString, .text = text});
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  uint32_t pop() {
    if (stack_.size() <= floor()) malformed("the stack is empty");
    const uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  uint32_t top() const {
    if (stack_.size() <= floor()) malformed("the stack is empty");
    return stack_.back();
  }
  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) malformed("a mark is missing");
    const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    std::vector<uint32_t> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  void push_tuple(size_t count) {
    Value tuple{.kind = Kind::kTuple};
    tuple.items.resize(count);
    for (size_t i = count; i-- > 0;) tuple.items[i] = pop();
    push(std::move(tuple));
  }

  // Values by their kind.
  const Value& expect(uint32_t number, Kind kind) const {
    const Value& found = values_[number];
    if (found.kind != kind) {
      malformed(std::string(name_of(found.kind)) + " in the place of " +
                std::string(name_of(kind)));
    }
    return found;
  }
  std::vector<int64_t> integers(uint32_t tuple) const {
    const Value& list = expect(tuple, Kind::kTuple);
    if (list.items.size() > kMaxDims) malformed("a tensor of more than 16 dimensions");
    std::vector<int64_t> numbers;
    for (const uint32_t item : list.items) numbers.push_back(expect(item, Kind::kInteger).integer);
    return numbers;
  }

  // Instructions.
  void set_items(uint32_t dict, const std::vector<uint32_t>& items) {
    expect(dict, Kind::kDict);
    if (items.size() % 2 != 0) malformed("a key without a value");
    hold(items.size() * sizeof(uint32_t));
    auto& all = values_[dict].items;
    all.insert(all.end(), items.begin(), items.end());
  }
  void append(uint32_t list, const std::vector<uint32_t>& items) {
    expect(list, Kind::kList);
    hold(items.size() * sizeof(uint32_t));
    auto& all = values_[list].items;
    all.insert(all.end(), items.begin(), items.end());
  }
  void put(uint64_t slot) {
    constexpr uint64_t kNodeBytes = 32;
    if (memo_.insert_or_assign(slot, top()).second) hold(kNodeBytes);
  }
  void get(uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) malformed("a value that was never noted");
    hold(sizeof(uint32_t));
    stack_.push_back(found->second);
  }
  void push_global(std::string_view module, std::string_view name) {
    if (module.size() > kMaxWord || name.size() > kMaxWord) malformed("a name without an end");
    const std::string whole = std::string(module) + "." + std::string(name);
    const auto known = find_global(whole);
    if (!known) {
      refuse("asks for `" + printable(whole) + "`, which no tensor needs; nothing was executed");
    }
    push({.kind = Kind::kGlobal, .text = *known});
  }
  // ('storage', torch.FloatStorage, '0', 'cpu', 12); files before 1.6 end with a view or None.
  void load_storage() {
    const Value tuple = expect(pop(), Kind::kTuple);
    const bool is_storage = (tuple.items.size() == 5 || tuple.items.size() == 6) &&
                            expect(tuple.items[0], Kind::kString).text == "storage";
    if (!is_storage) malformed("a reference that is no storage");
    if (tuple.items.size() == 6 && values_[tuple.items[5]].kind != Kind::kNone) {
      refuse("has a view of a storage, which is not read");
    }
    const auto dtype = dtype_of_storage(expect(tuple.items[1], Kind::kGlobal).text);
    if (!dtype) malformed("a storage without a type");
    const int64_t size = expect(tuple.items[4], Kind::kInteger).integer;
    if (size < 0) malformed("a storage of negative size");
    const std::string_view key = expect(tuple.items[2], Kind::kString).text;
    if (key.size() > kMaxWord) malformed("the key of a storage is longer than 1,000 bytes");
    hold(sizeof(PickledStorage));
    storages_.push_back({.key = key, .dtype = *dtype});
    push({.kind = Kind::kStorage, .integer = size, .text = key, .dtype = *dtype});
  }
  // (storage, offset, sizes, strides, …): what follows concerns gradients.
  void rebuild_tensor(const std::vector<uint32_t>& arguments, size_t min, size_t max) {
    if (arguments.size() < min || arguments.size() > max) malformed("a tensor of unknown kind");
    const Value& storage = expect(arguments[0], Kind::kStorage);
    PickledTensor tensor{.name = "",
                         .dtype = storage.dtype,
                         .storage = storage.text,
                         .storage_size = storage.integer,
                         .offset = expect(arguments[1], Kind::kInteger).integer,
                         .sizes = integers(arguments[2]),
                         .strides = integers(arguments[3])};
    check_place(tensor);
    hold(tensor);
    tensors_.push_back(std::move(tensor));
    push({.kind = Kind::kTensor, .integer = static_cast<int64_t>(tensors_.size() - 1)});
  }
  void check_place(const PickledTensor& tensor) const {
    const auto count = product(tensor.sizes);
    if (!count || tensor.sizes.size() != tensor.strides.size() || tensor.offset < 0) {
      malformed("a tensor whose shape makes no sense");
    }
    for (const int64_t stride : tensor.strides) {
      if (stride < 0) malformed("a tensor whose shape makes no sense");
    }
    if (*count == 0) return;
    const auto last = last_element(tensor);
    if (!last || *last >= tensor.storage_size) malformed("a tensor beyond its storage");
    if (*count > tensor.storage_size) malformed("a tensor that repeats its storage");
  }
  void reduce() {
    const std::vector<uint32_t> arguments = expect(pop(), Kind::kTuple).items;
    const std::string_view name = expect(pop(), Kind::kGlobal).text;
    if (name == kOrderedDict && arguments.empty()) {
      push({.kind = Kind::kDict});
    } else if (name == kRebuildTensor2) {
      rebuild_tensor(arguments, 6, 7);
    } else if (name == kRebuildTensor) {
      rebuild_tensor(arguments, 4, 4);
    } else if (name == kRebuildParameter && arguments.size() == 3) {
      expect(arguments[0], Kind::kTensor);
      stack_.push_back(arguments[0]);
    } else {
      refuse("calls `" + std::string(name) +
             "` in a way that no tensor needs; nothing was executed");
    }
  }
  // The attributes of an OrderedDict (`_metadata`, versions of modules) say nothing of tensors.
  void build() {
    pop();
    expect(top(), Kind::kDict);
  }
  void push_long(uint64_t count) {
    const std::string_view bytes = take(count);
    if (count > 8) return push({.kind = Kind::kLong, .text = bytes});
    const bool negative = count > 0 && (static_cast<uint8_t>(bytes.back()) & 0x80) != 0;
    uint64_t value = negative ? UINT64_MAX : 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    push_integer(static_cast<int64_t>(value));
  }
  void mark() {
    if (marks_.size() == kMaxDepth) malformed("nested deeper than 64 levels");
    marks_.push_back(stack_.size());
  }

  /// True at the end.
  bool step(uint8_t opcode) {
    switch (opcode) {
      case '.':
        return true;
      case 0x80:  // PROTO
        if (byte() > 5) malformed("a protocol that is not known");
        return false;
      case 0x95:  // FRAME
        if (unsigned_of(8) > bytes_.size()) malformed("a frame beyond the end");
        return false;
      case '(':
        mark();
        return false;
      default:
        if (!step_value(opcode) && !step_memory(opcode)) refuse_instruction(opcode);
        return false;
    }
  }
  [[noreturn]] void refuse_instruction(uint8_t opcode) const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const std::string hex{kDigits[opcode >> 4], kDigits[opcode & 15]};
    refuse("has the pickle instruction 0x" + hex + " at byte " + std::to_string(at_ - 1) +
           ", which no tensor needs; nothing was executed");
  }
  bool step_value(uint8_t opcode) {
    switch (opcode) {
      case 'N':
        push({.kind = Kind::kNone});
        return true;
      case 0x88:
      case 0x89:  // NEWTRUE, NEWFALSE
        push({.kind = Kind::kBool, .integer = opcode == 0x88 ? 1 : 0});
        return true;
      case 'J':
        push_integer(static_cast<int32_t>(unsigned_of(4)));
        return true;
      case 'K':
        push_integer(byte());
        return true;
      case 'M':
        push_integer(static_cast<int64_t>(unsigned_of(2)));
        return true;
      case 0x8a:  // LONG1
        push_long(byte());
        return true;
      case 'G':
        take(8);
        push({.kind = Kind::kFloat});
        return true;
      case 'X':
      case 'T':  // BINUNICODE, BINSTRING
        push_text(unsigned_of(4));
        return true;
      case 0x8c:
      case 'U':  // SHORT_BINUNICODE, SHORT_BINSTRING
        push_text(byte());
        return true;
      case '}':
        push({.kind = Kind::kDict});
        return true;
      case ']':
        push({.kind = Kind::kList});
        return true;
      case ')':
        push({.kind = Kind::kTuple});
        return true;
      case 't':
        push({.kind = Kind::kTuple, .items = pop_to_mark()});
        return true;
      case 0x85:
      case 0x86:
      case 0x87:  // TUPLE1, TUPLE2, TUPLE3
        push_tuple(opcode - 0x84U);
        return true;
      case 'c': {
        const std::string_view module = word();
        push_global(module, word());
        return true;
      }
      case 0x93: {  // STACK_GLOBAL
        const std::string_view name = expect(pop(), Kind::kString).text;
        push_global(expect(pop(), Kind::kString).text, name);
        return true;
      }
      default:
        return false;
    }
  }
  bool step_memory(uint8_t opcode) {
    switch (opcode) {
      case 'q':
        put(byte());
        return true;
      case 'r':
        put(unsigned_of(4));
        return true;
      case 0x94:  // MEMOIZE
        put(memo_.size());
        return true;
      case 'h':
        get(byte());
        return true;
      case 'j':
        get(unsigned_of(4));
        return true;
      case 's': {
        const uint32_t item = pop(), key = pop();
        set_items(top(), {key, item});
        return true;
      }
      case 'u': {
        const auto items = pop_to_mark();
        set_items(top(), items);
        return true;
      }
      case 'a': {
        const uint32_t item = pop();
        append(top(), {item});
        return true;
      }
      case 'e': {
        const auto items = pop_to_mark();
        append(top(), items);
        return true;
      }
      case 'R':
        reduce();
        return true;
      case 'b':
        build();
        return true;
      case 'Q':
        load_storage();
        return true;
      default:
        return false;
    }
  }

  std::string_view bytes_, where_;
  Allowance allowance_;
  size_t at_ = 0;
  std::vector<Value> values_;
  std::vector<PickledTensor> tensors_;
  std::vector<PickledStorage> storages_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
};

/// The dict of weights: `root`, or the one in it that holds them.
const Value& dict_of_weights(const Machine& machine, const Value& root) {
  for (const auto wanted : kWeightKeys) {
    for (size_t i = 0; i < root.items.size(); i += 2) {
      const Value& key = machine.value(root.items[i]);
      const Value& item = machine.value(root.items[i + 1]);
      const bool is_it = key.kind == Kind::kString && key.text == wanted;
      if (is_it && item.kind == Kind::kDict && !item.items.empty()) return item;
    }
  }
  return root;
}

}  // namespace

bool PickledTensor::is_contiguous() const {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

int64_t PickledTensor::num_elements() const {
  return product(sizes).value_or(0);
}

PickledDict parse_pickled_tensors(std::string_view bytes, std::string_view where) {
  Machine machine(bytes, where);
  const Value& root = machine.run();
  if (root.kind != Kind::kDict) {
    machine.refuse("holds " + std::string(name_of(root.kind)) + ", not a dict of tensors");
  }
  const Value& weights = dict_of_weights(machine, root);
  PickledDict dict;
  std::set<std::string_view> names;
  for (size_t i = 0; i < weights.items.size(); i += 2) {
    const Value& key = machine.value(weights.items[i]);
    const Value& item = machine.value(weights.items[i + 1]);
    if (key.kind != Kind::kString) {
      machine.refuse("has " + std::string(name_of(key.kind)) + " as the name of a tensor");
    }
    const std::string shown = printable(key.text);
    if (item.kind != Kind::kTensor) {
      machine.refuse("`" + shown + "` is " + std::string(name_of(item.kind)) + ", not a tensor");
    }
    if (!names.insert(key.text).second) machine.malformed("`" + shown + "` stands twice");
    machine.hold(machine.tensor(item));  // many names may have one tensor
    dict.tensors.push_back(machine.tensor(item));
    dict.tensors.back().name = key.text;
  }
  dict.storages = machine.take_storages();
  dict.num_bytes = machine.position();
  return dict;
}

PickledPlain parse_pickled_plain(std::string_view bytes, std::string_view where) {
  Machine machine(bytes, where);
  const Value& root = machine.run();
  PickledPlain plain;
  if (root.kind == Kind::kLong) plain.integer = root.text;
  if (root.kind == Kind::kInteger) {
    for (int i = 0; i < 8; ++i) {
      plain.integer += static_cast<char>(static_cast<uint64_t>(root.integer) >> (8 * i) & 0xFF);
    }
  }
  if (root.kind == Kind::kList) {
    for (const uint32_t item : root.items) {
      if (machine.value(item).kind != Kind::kString) continue;
      machine.hold(sizeof(std::string_view));
      plain.strings.push_back(machine.value(item).text);
    }
  }
  plain.num_bytes = machine.position();
  return plain;
}

}  // namespace stretto::store

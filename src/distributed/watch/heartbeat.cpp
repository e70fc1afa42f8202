#include "distributed/watch/heartbeat.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/system_info.h"
#include "base/text.h"
#include "distributed/cores.h"
#include "distributed/failure.h"
#include "distributed/socket.h"
#include "distributed/watch/heartbeat_frame.h"
#include "distributed/watch/silence_watch.h"
#include "distributed/watch/stall_watch.h"

namespace stretto::distributed {
namespace {

using Kind = HeartbeatFrame::Kind;
using std::chrono::milliseconds;

constexpr milliseconds kGreetingLimit{5000};
constexpr milliseconds kAnswerLimit{20000};  // to a hello; rank 0's machine may be busy
constexpr milliseconds kFirstPause{50}, kLongestPause{1000};  // between attempts to connect
constexpr size_t kMaxStrangers = 64;  // connections without a hello, beside one of each rank
constexpr size_t kAcceptsAtOnce = 32;
constexpr milliseconds kUnheeded{3000};  // news that no thread has asked for
constexpr size_t kMaxWaiting = 16384;  // bytes that wait for a link; a beat more would tell nothing
constexpr milliseconds kLastWords{200};  // for news to reach others before this process ends
constexpr double kWarnSeconds = 300;     // of a stall, or a sixth of what ends the job

/// One connection; rank -1 until it has said hello.
struct Link {
  Socket socket;
  int rank = -1;
  bool settled = false;  ///< a frame came: before it the other side may still give up and try again
  Clock::time_point opened = Clock::now();
  std::string in, out;
};

/// What a rank tells all others before the connections are made.
struct Introduction {
  Peer peer;
  std::string place;  ///< processes of the same place reach each other over loopback
};

std::vector<Introduction> introduce(const ProcessGroup& group) {
  const nlohmann::json mine{{"host", host_name()}, {"pid", ::getpid()}, {"place", network_place()}};
  std::vector<Introduction> all;
  for (const auto& text : group.all_gather_bytes(mine.dump())) {
    const auto json = parse_json(text, "introduction of a rank", 65536);
    all.push_back({{json.at("host").get<std::string>(), json.at("pid").get<int64_t>()},
                   json.at("place").get<std::string>()});
  }
  return all;
}

}  // namespace

struct Heartbeat::Impl {
  int rank = 0, size = 1;
  Clock::duration timeout{}, interval{};
  std::shared_ptr<PeerWatch> watch;
  std::shared_ptr<const Activity> activity;
  std::optional<StallWatch> stalls;              ///< rank 0, as long as all are there
  std::atomic<double> wanted_stall_seconds{-1};  ///< below 0: stalls are not watched
  bool watching_stalls = false;
  std::string token;
  Socket listener;
  std::vector<Link> links;
  std::optional<SilenceWatch> silence;       ///< of all but this rank
  std::optional<Clock::time_point> news_at;  ///< of a loss that was not announced
  int news_of = -1;                          ///< the rank that was lost first
  Socket wake;                               ///< eventfd that ends the loop
  std::mutex mutex;
  std::optional<HeartbeatFrame> farewell;
  std::thread thread;

  void listen(const ProcessGroup& group, const std::vector<Introduction>& all);
  Link connect(const nlohmann::json& invitation) const;
  void loop();
  void read(Link& link);
  void take_hello(Link& link);
  void take(Link& link, const HeartbeatFrame& frame);
  void mark_lost(int lost_rank, const std::string& how);
  void mark_left(const HeartbeatFrame& frame);
  void note_loss(int lost_rank, const std::string& how);
  void warn_unheeded(Clock::time_point now);
  void tell_others(const HeartbeatFrame& frame, int but_rank);
  void flush(Link& link);
  void judge(Clock::time_point now);
  void judge_stalls(Clock::time_point now);
  void declare_hung(int hung_rank, const std::string& how);
  [[noreturn]] void end_this_process(const std::string& how);
  HeartbeatFrame beat() const;
  void accept_some();
  void say_farewell();
  void stop();
};

void Heartbeat::Impl::listen(const ProcessGroup& group, const std::vector<Introduction>& all) {
  const bool one_place = std::all_of(all.begin(), all.end(),
                                     [&](const auto& one) { return one.place == all[0].place; });
  nlohmann::json invitation;
  if (rank == 0) {
    make_room_for(static_cast<size_t>(size));
    listener = one_place ? listen_on_loopback(0) : listen_on_all(0);
    auto addresses = one_place ? std::vector{address_of(listener)} : own_addresses();
    if (!one_place) addresses.push_back(host_name());
    token = random_hex(32);
    invitation = {{"port", port_of(listener)}, {"token", token}, {"addresses", addresses}};
  }
  const auto received = group.all_gather_bytes(rank == 0 ? invitation.dump() : "");
  if (rank == 0) return;
  invitation = parse_json(received[0], "heartbeat of rank 0", 1 << 20);
  token = invitation.at("token").get<std::string>();
  links.push_back(connect(invitation));
}

Link Heartbeat::Impl::connect(const nlohmann::json& invitation) const {
  const int port = invitation.at("port").get<int>();
  HeartbeatHello hello{.rank = rank};
  std::copy_n(token.begin(), std::min(token.size(), hello.token.size()), hello.token.begin());
  const auto give_up = Clock::now() + kAnswerLimit;
  // An address of rank 0 may mean another machine here (bridges of containers do), so at first each
  // gets a second only. Rank 0 may also have sent this one away, while strangers or too many ranks
  // were at its door.
  auto patience = milliseconds(1000);
  std::string silent, tried;
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    silent.clear();
    tried.clear();
    for (const std::string address : invitation.at("addresses")) {
      Link link{.socket = connect_to(address, port, Clock::now() + patience), .rank = 0};
      const auto deadline = Clock::now() + kGreetingLimit + patience;
      HeartbeatFrame first;  // rank 0 answers a right hello with a beat
      if (link.socket && send_all(link.socket, hello.bytes(), deadline) &&
          receive_all(link.socket, reinterpret_cast<char*>(&first), sizeof first, deadline) &&
          send_all(link.socket, HeartbeatFrame{}.bytes(), deadline)) {
        link.settled = true;
        return link;
      }
      (link.socket ? silent : tried) += " " + address + ":" + std::to_string(port);
    }
    if (Clock::now() > give_up) break;
    std::this_thread::sleep_for(pause);
    patience = std::min(2 * patience, kGreetingLimit);
  }
  const std::string who = "rank " + std::to_string(rank);
  if (!silent.empty()) {
    throw Error(ExitCode::kPeerLost,
                who + " gets no answer from the heartbeat of rank 0 at" + silent,
                "is rank 0 stopped, or its machine overloaded? Or another program listens there");
  }
  throw Error(ExitCode::kPeerLost, who + " cannot reach the heartbeat of rank 0 at" + tried,
              "let TCP connections between the hosts of the job pass the firewall");
}

void Heartbeat::Impl::flush(Link& link) {
  while (!link.out.empty()) {
    const ssize_t count =
        ::send(link.socket.fd(), link.out.data(), link.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count <= 0) return;  // full, or closed: then reading shows it
    link.out.erase(0, static_cast<size_t>(count));
  }
}

void Heartbeat::Impl::tell_others(const HeartbeatFrame& frame, int but_rank) {
  for (auto& link : links) {
    if (link.rank < 0 || link.rank == but_rank || link.out.size() > kMaxWaiting) continue;
    link.out += frame.bytes();
    flush(link);
  }
}

void Heartbeat::Impl::mark_lost(int lost_rank, const std::string& how) {
  if (silence->forgotten(lost_rank)) return;
  silence->forget(lost_rank);
  note_loss(lost_rank, how);
  if (rank != 0) return;
  HeartbeatFrame frame{.kind = static_cast<uint32_t>(Kind::kLost), .rank = lost_rank};
  frame.set_text(how);
  tell_others(frame, lost_rank);
}

void Heartbeat::Impl::mark_left(const HeartbeatFrame& frame) {
  if (silence->forgotten(frame.rank)) return;
  silence->forget(frame.rank);
  const auto code = static_cast<ExitCode>(frame.exit_code);
  if (code == ExitCode::kOk || code == ExitCode::kInterrupted) {
    if (stalls) stalls->forget(frame.rank);
    watch->left(frame.rank, timeout);
  } else {
    const std::string why = frame.words();
    note_loss(frame.rank, "it left with exit code " + std::to_string(frame.exit_code) +
                              (why.empty() ? "" : ": " + why));
  }
  if (rank == 0) tell_others(frame, frame.rank);
}

void Heartbeat::Impl::note_loss(int lost_rank, const std::string& how) {
  stalls.reset();
  watch->lost(lost_rank, how);
  if (news_of >= 0) return;
  news_of = lost_rank;
  news_at = Clock::now();
}

// The thread that computes will hear of it, but that may take long.
void Heartbeat::Impl::warn_unheeded(Clock::time_point now) {
  if (!news_at || now - *news_at < kUnheeded) return;
  news_at.reset();
  if (watch->heeded() || rank != (news_of == 0 ? 1 : 0)) return;
  log::warn(std::string(watch->news().what()) + "; rank " + std::to_string(rank) +
            " still computes, and leaves as soon as it can");
}

void Heartbeat::Impl::take(Link& link, const HeartbeatFrame& frame) {
  const auto now = Clock::now();
  link.settled = true;
  silence->hear(link.rank, now);
  if (frame.kind == static_cast<uint32_t>(Kind::kBeat)) {
    const auto states = frame.states();
    if (stalls && states) stalls->hear(link.rank, *states, now);
    return;
  }
  if (rank != 0 && frame.rank == rank && frame.kind == static_cast<uint32_t>(Kind::kLost)) {
    end_this_process(frame.words());
  }
  const bool known = frame.rank >= 0 && frame.rank < size && frame.rank != rank;
  // Only rank 0 may speak of others.
  if (!known || (rank == 0 && frame.rank != link.rank)) return;
  if (frame.kind == static_cast<uint32_t>(Kind::kGoodbye)) mark_left(frame);
  if (frame.kind == static_cast<uint32_t>(Kind::kLost) && rank != 0) {
    mark_lost(frame.rank, frame.words());
  }
}

void Heartbeat::Impl::take_hello(Link& link) {
  HeartbeatHello hello;
  std::memcpy(&hello, link.in.data(), sizeof hello);
  link.in.erase(0, sizeof hello);
  const bool right = hello.magic == HeartbeatHello::kMagic && hello.rank > 0 && hello.rank < size &&
                     same_secret({hello.token.data(), hello.token.size()}, token);
  const auto before = std::find_if(links.begin(), links.end(), [&](const Link& one) {
    return one.socket && one.rank == hello.rank;
  });
  if (!right || (before != links.end() && before->settled)) {
    link.socket.close();
    return;
  }
  if (before != links.end()) before->socket.close();  // an attempt that the rank has given up
  link.rank = hello.rank;
  silence->hear(link.rank, Clock::now());
  link.out += HeartbeatFrame{}.bytes();
  flush(link);
}

void Heartbeat::Impl::read(Link& link) {
  std::array<char, 4096> bytes;
  while (link.socket) {
    const ssize_t count = ::recv(link.socket.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count <= 0) {
      link.socket.close();
      if (link.settled) mark_lost(link.rank, "its process has ended");
      return;
    }
    link.in.append(bytes.data(), static_cast<size_t>(count));
    if (link.rank < 0 && link.in.size() >= sizeof(HeartbeatHello)) take_hello(link);
    while (link.rank >= 0 && link.in.size() >= sizeof(HeartbeatFrame)) {
      HeartbeatFrame frame;
      std::memcpy(&frame, link.in.data(), sizeof frame);
      link.in.erase(0, sizeof frame);
      take(link, frame);
    }
  }
}

// Not all at once: those of a large job come together, and are no strangers once their hello is
// read.
void Heartbeat::Impl::accept_some() {
  auto strangers = static_cast<size_t>(
      std::count_if(links.begin(), links.end(), [](const Link& link) { return link.rank < 0; }));
  for (size_t i = 0; i < kAcceptsAtOnce; ++i) {
    Socket socket = accept_from(listener);
    if (!socket) return;
    if (strangers >= kMaxStrangers + static_cast<size_t>(size)) continue;
    links.push_back({.socket = std::move(socket)});
    ++strangers;
  }
}

void Heartbeat::Impl::judge(Clock::time_point now) {
  for (auto& link : links) {
    if (link.rank < 0 && now - link.opened > kGreetingLimit) link.socket.close();
  }
  std::erase_if(links, [](const Link& link) { return !link.socket; });
  for (const auto& one : silence->judge(now)) {
    if (rank != 0 && one.rank != 0) continue;  // of the others rank 0 tells
    const double seconds = std::chrono::duration<double>(one.time).count();
    mark_lost(one.rank, "it was not heard of for " + fixed(seconds, seconds < 10 ? 1 : 0) +
                            " s (stopped, or its link is down)");
  }
}

void Heartbeat::Impl::judge_stalls(Clock::time_point now) {
  if (!stalls || !activity) return;
  stalls->hear(rank, activity->states(), now);
  const double wanted = wanted_stall_seconds.load();
  if (wanted >= 0 && !watching_stalls) {
    watching_stalls = true;
    const auto duration = [](double seconds) {
      return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    };
    // Earlier than a stopped process would be told apart from a hung one.
    const auto stall = wanted > 0 ? std::max(timeout, duration(wanted)) : Clock::duration::zero();
    const auto warn_after =
        duration(wanted > 0 ? std::min(wanted / 6, kWarnSeconds) : kWarnSeconds);
    stalls->watch_stalls(std::max(timeout, warn_after), stall, now);
  }
  const auto finding = stalls->judge(now);
  if (!finding) return;
  if (finding->lost) return declare_hung(finding->rank, finding->how);
  const double limit = wanted_stall_seconds.load();
  log::warn(watch->name_of(finding->rank) + " may hang: " + finding->how +
            (limit > 0 ? "; after dist.stall_seconds = " + fixed(limit, limit < 10 ? 1 : 0) +
                             " all processes end"
                       : ""));
}

// Unlike one that is stopped, a process that hangs can still be told, and ends itself.
void Heartbeat::Impl::declare_hung(int hung_rank, const std::string& how) {
  HeartbeatFrame frame{.kind = static_cast<uint32_t>(Kind::kLost), .rank = hung_rank};
  frame.set_text(how);
  tell_others(frame, -1);
  if (hung_rank == rank) end_this_process(frame.words());
  silence->forget(hung_rank);
  note_loss(hung_rank, frame.words());
}

void Heartbeat::Impl::end_this_process(const std::string& how) {
  // The thread that hangs may hold a lock that saying so would need.
  std::thread([] {
    std::this_thread::sleep_for(kGreetingLimit);
    ::_exit(static_cast<int>(ExitCode::kPeerLost));
  }).detach();
  report_failure(
      failure_of(PeerLost(rank, watch->name_of(rank) + " is lost: " + how, kStartAgain)));
  std::this_thread::sleep_for(kLastWords);
  ::_exit(static_cast<int>(ExitCode::kPeerLost));
}

HeartbeatFrame Heartbeat::Impl::beat() const {
  HeartbeatFrame frame;
  if (activity) frame.set_states(activity->states());
  return frame;
}

void Heartbeat::Impl::say_farewell() {
  const std::lock_guard lock(mutex);
  if (!farewell) return;
  const auto deadline = Clock::now() + milliseconds(300);
  for (auto& link : links) {
    if (link.rank < 0 || !link.socket) continue;
    send_all(link.socket, link.out + std::string(farewell->bytes()), deadline);
  }
}

void Heartbeat::Impl::loop() {
  auto next_beat = Clock::now();
  while (true) {
    std::vector<pollfd> ready{{.fd = wake.fd(), .events = POLLIN, .revents = 0},
                              {.fd = listener.fd(), .events = POLLIN, .revents = 0}};
    for (const auto& link : links) {
      ready.push_back({.fd = link.socket.fd(), .events = POLLIN, .revents = 0});
    }
    const auto wait = std::chrono::ceil<milliseconds>(next_beat - Clock::now()).count();
    ::poll(ready.data(), ready.size(), static_cast<int>(std::clamp<int64_t>(wait, 0, 2000)));
    if (ready[0].revents != 0) break;
    for (size_t i = 0; i < links.size(); ++i) {
      if (ready[i + 2].revents != 0) read(links[i]);
    }
    if (ready[1].revents != 0) accept_some();
    const auto now = Clock::now();
    if (const auto gap = silence->pass(now); gap && stalls) stalls->pause(*gap);
    if (now >= next_beat) {
      tell_others(beat(), -1);
      next_beat = now + interval;
    }
    judge(now);
    judge_stalls(now);
    warn_unheeded(now);
  }
  say_farewell();
}

void Heartbeat::Impl::stop() {
  if (!thread.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake.fd(), &one, sizeof one);
  thread.join();
  links.clear();
}

Heartbeat::Heartbeat(const ProcessGroup& group, double timeout_seconds,
                     std::shared_ptr<PeerWatch> watch, std::shared_ptr<const Activity> activity)
    : impl_(std::make_unique<Impl>()) {
  Impl& my = *impl_;
  my.rank = group.rank();
  my.size = group.size();
  my.timeout =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds));
  my.interval = SilenceWatch::interval_of(my.timeout);
  my.watch = std::move(watch);
  my.activity = std::move(activity);
  if (my.rank == 0 && my.activity) my.stalls.emplace(my.size, my.timeout);
  const auto all = introduce(group);
  std::vector<Peer> peers;
  for (const auto& one : all) peers.push_back(one.peer);
  my.watch->set_peers(std::move(peers));
  my.wake = Socket(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  my.listen(group, all);
  my.silence.emplace(my.size, my.timeout, Clock::now());
  my.silence->forget(my.rank);
  const SignalsBlocked blocked;  // signals are for the thread that trains
  my.thread = std::thread([&my] { my.loop(); });
}

Heartbeat::~Heartbeat() {
  impl_->stop();
}

const PeerWatch& Heartbeat::watch() const {
  return *impl_->watch;
}

void Heartbeat::watch_stalls(double stall_seconds) {
  impl_->wanted_stall_seconds.store(stall_seconds);
}

void Heartbeat::say_goodbye(int exit_code, const std::string& why) {
  HeartbeatFrame frame{
      .kind = static_cast<uint32_t>(Kind::kGoodbye), .rank = impl_->rank, .exit_code = exit_code};
  frame.set_text(why.substr(0, why.find('\n')));
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->farewell = frame;
  }
  impl_->stop();
}

}  // namespace stretto::distributed

// A plan of two layers, or of two groups of two, on one data-parallel rank with one sequence holds everything that
// repeats itself: what part p of a micro-step has in use at its operation i, of a model of n layers, is
//
//   embedding_kept + (groups before) group_kept + (layers of its group computed again before) layer_kept + moments[i]
//
// A buffer is in use from its first to its last operation; all of them are of the compute stream.
#include "memory/memory_profile.h"

#include <algorithm>
#include <map>

#include "krigtune/plan/build_plan.h"

namespace krigtune {
namespace {

enum class PartKind { kEmbedForward, kForward, kHeadForward, kHeadBackward, kRecompute, kBackward, kEmbedBackward };

struct Part {
  PartKind kind{};
  std::int32_t layer = -1;
  std::vector<std::size_t> operations;
};

bool counts(Term term) {
  return term == Term::kActivations || term == Term::kLogits || term == Term::kWorkspace || term == Term::kInputs;
}

class ProfileReader {
 public:
  ProfileReader(const StepPlan& plan, bool groups) : plan_(plan), groups_(groups) {
    number_tensors();
    find_parts();
    find_lifetimes();
  }

  MemoryProfile read() {
    MemoryProfile profile;
    profile.tensors = tensors_;
    const std::int32_t first = groups_ ? 2 : 1;  // of the second group
    profile.embedding_kept = at_start(part(PartKind::kForward, 0));
    profile.group_kept = at_start(part(PartKind::kForward, first));
    profile.group_kept -= profile.embedding_kept;
    const MomentBytes& kept = profile.group_kept;
    profile.embed_forward = profiled(part(PartKind::kEmbedForward), {});
    profile.embed_backward = profiled(part(PartKind::kEmbedBackward), {});
    MomentBytes base = profile.embedding_kept;
    base += kept;
    profile.forward[0] = profiled(part(PartKind::kForward, first), base);
    profile.backward[0] = profiled(part(PartKind::kBackward, first), base);
    if (groups_) read_group(profile, base);
    base += kept;
    profile.head_forward = profiled(part(PartKind::kHeadForward), base);
    profile.head_backward = profiled(part(PartKind::kHeadBackward), base);
    return profile;
  }

 private:
  void read_group(MemoryProfile& profile, MomentBytes base) {
    profile.forward[1] = profiled(part(PartKind::kForward, 3), base);
    profile.recompute[0] = profiled(part(PartKind::kRecompute, 2), base);
    profile.layer_kept = at_start(part(PartKind::kRecompute, 3));
    profile.layer_kept -= base;
    base += profile.layer_kept;
    profile.recompute[1] = profiled(part(PartKind::kRecompute, 3), base);
    profile.backward[1] = profiled(part(PartKind::kBackward, 3), base);
  }

  // Tensors of the plan in model order: embedding, layers one like the other, head.
  void number_tensors() {
    for (const ParameterTensor& tensor : plan_.tensors) {
      const bool in_block = tensor.name.starts_with("block");
      if (in_block && !tensor.name.starts_with("block0.")) {
        profiled_.push_back(-1);
        continue;
      }
      const auto unit = in_block ? ProfiledTensor::Unit::kBlock
                        : tensor.name.starts_with("table") || tensor.name == "positions"
                            ? ProfiledTensor::Unit::kEmbedding
                            : ProfiledTensor::Unit::kHead;
      profiled_.push_back(static_cast<int>(tensors_.size()));
      tensors_.push_back({unit, tensor.elems, 0});
    }
    const auto block = std::count_if(tensors_.begin(), tensors_.end(),
                                     [](const auto& t) { return t.unit == ProfiledTensor::Unit::kBlock; });
    const auto begin = std::find_if(tensors_.begin(), tensors_.end(),
                                    [](const auto& t) { return t.unit == ProfiledTensor::Unit::kBlock; });
    const auto first = static_cast<int>(begin - tensors_.begin());
    int place = 0;
    for (int& number : profiled_) {
      if (number < 0) number = first + (place - first) % static_cast<int>(block);
      ++place;
    }
    set_turns();
  }

  // As gradient_ready_order of the plan: modules from the last to the first, a module's tensors in model order; the
  // positions before the table; a head before its norm.
  void set_turns() {
    std::map<ProfiledTensor::Unit, int> turn;
    std::vector<std::vector<int>> modules;
    std::string last;
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      const std::string& name = plan_.tensors[t].name;
      if (name.starts_with("block") && !name.starts_with("block0.")) continue;
      const std::string module = name.substr(0, name.rfind('.'));
      if (module != last || modules.empty()) modules.emplace_back();
      modules.back().push_back(profiled_[t]);
      last = module;
    }
    for (auto module = modules.rbegin(); module != modules.rend(); ++module) {
      for (const int t : *module) {
        ProfiledTensor& tensor = tensors_[static_cast<std::size_t>(t)];
        tensor.turn = turn[tensor.unit]++;
      }
    }
  }

  PartKind kind_of(const Operation& operation, bool blocks_seen) const {
    if (operation.layer < 0) {
      if (operation.phase == Phase::kForward) return blocks_seen ? PartKind::kHeadForward : PartKind::kEmbedForward;
      return !backward_seen_ ? PartKind::kHeadBackward : PartKind::kEmbedBackward;
    }
    if (operation.phase == Phase::kForward) return PartKind::kForward;
    return groups_ && operation.phase == Phase::kRecompute ? PartKind::kRecompute : PartKind::kBackward;
  }

  void find_parts() {
    bool blocks_seen = false;
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
      const Operation& operation = plan_.operations[i];
      if (operation.stream != Stream::kCompute || operation.phase == Phase::kOptimizer) continue;
      const PartKind kind = kind_of(operation, blocks_seen);
      blocks_seen = blocks_seen || operation.layer >= 0;
      backward_seen_ = backward_seen_ || (operation.layer >= 0 && operation.phase != Phase::kForward);
      if (parts_.empty() || parts_.back().kind != kind || parts_.back().layer != operation.layer) {
        parts_.push_back({kind, operation.layer, {}});
      }
      parts_.back().operations.push_back(i);
    }
  }

  void find_lifetimes() {
    first_.assign(plan_.buffers.size(), -1);
    last_.assign(plan_.buffers.size(), -1);
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
      for (const Operand& operand : plan_.operations[i].operands) {
        const auto b = static_cast<std::size_t>(operand.range.buffer);
        if (first_[b] < 0) first_[b] = static_cast<std::int64_t>(i);
        last_[b] = static_cast<std::int64_t>(i);
      }
    }
  }

  const Part& part(PartKind kind, std::int32_t layer = -1) const {
    return *std::find_if(parts_.begin(), parts_.end(),
                         [&](const Part& p) { return p.kind == kind && p.layer == layer; });
  }

  // Of buffers that operation `from`, or one before it, touched first, and `to`, or one behind it, last.
  MomentBytes live_at(std::size_t from, std::size_t to) const {
    MomentBytes bytes;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& buffer = plan_.buffers[b];
      if (buffer.persistent || !counts(buffer.term)) continue;
      if (first_[b] <= static_cast<std::int64_t>(from) && last_[b] >= static_cast<std::int64_t>(to)) {
        bytes.add(buffer.term, buffer.bytes());
      }
    }
    return bytes;
  }

  // What earlier parts have left.
  MomentBytes at_start(const Part& part) const { return live_at(part.operations.front() - 1, part.operations.front()); }

  ProfiledPart profiled(const Part& part, const MomentBytes& base) const {
    ProfiledPart result;
    if (part.operations.front() > 0) {
      result.start = at_start(part);
      result.start -= base;
    }
    std::map<std::pair<int, TensorEvent::Kind>, int> last;  // by tensor
    for (const std::size_t i : part.operations) {
      const auto at = static_cast<int>(result.moments.size());
      result.moments.push_back(live_at(i, i));
      result.moments.back() -= base;
      result.carried.push_back(live_at(i, i + 1));
      result.carried.back() -= base;
      for (const Operand& operand : plan_.operations[i].operands)
        note(operand, at, part.kind == PartKind::kEmbedBackward, result, last);
    }
    for (const auto& [of, at] : last) {
      result.events.push_back({at, of.first, of.second});
      result.reads += of.second == TensorEvent::Kind::kLastRead ? 1 : 0;
    }
    std::stable_sort(result.events.begin(), result.events.end(),
                     [](const TensorEvent& a, const TensorEvent& b) { return a.at < b.at; });
    result.find_peak();
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      const bool is_read = last.contains({static_cast<int>(t), TensorEvent::Kind::kLastRead});
      if (tensors_[t].unit == unit_of(part.kind) && !is_read) result.unread.push_back(static_cast<int>(t));
    }
    return result;
  }

  static ProfiledTensor::Unit unit_of(PartKind kind) {
    using Unit = ProfiledTensor::Unit;
    if (kind == PartKind::kEmbedForward || kind == PartKind::kEmbedBackward) return Unit::kEmbedding;
    return kind == PartKind::kHeadForward || kind == PartKind::kHeadBackward ? Unit::kHead : Unit::kBlock;
  }

  void note(const Operand& operand, int at, bool in_embed_backward, ProfiledPart& to,
            std::map<std::pair<int, TensorEvent::Kind>, int>& last) const {
    const Term term = plan_.buffers[static_cast<std::size_t>(operand.range.buffer)].term;
    if (term != Term::kParameters && term != Term::kGradients) return;
    const auto behind =
        std::upper_bound(plan_.tensors.begin(), plan_.tensors.end(), operand.range.begin_elems,
                         [](std::int64_t begin, const ParameterTensor& tensor) { return begin < tensor.begin_elems; });
    const int tensor = profiled_[static_cast<std::size_t>(behind - plan_.tensors.begin()) - 1];
    using Kind = TensorEvent::Kind;
    if (term == Term::kGradients && !last.contains({tensor, Kind::kLastGradient})) {
      to.events.push_back({at, tensor, Kind::kFirstGradient});
    }
    if (term == Term::kGradients) last[{tensor, Kind::kLastGradient}] = at;
    // With sharded parameters backward of the embedding holds its unit too.
    const bool is_embedding = tensors_[static_cast<std::size_t>(tensor)].unit == ProfiledTensor::Unit::kEmbedding;
    if (term == Term::kParameters || (is_embedding && in_embed_backward)) last[{tensor, Kind::kLastRead}] = at;
  }

  const StepPlan& plan_;
  bool groups_;
  bool backward_seen_ = false;
  std::vector<ProfiledTensor> tensors_;
  std::vector<int> profiled_;  ///< by tensor of the plan
  std::vector<Part> parts_;
  std::vector<std::int64_t> first_, last_;  ///< operation that touches it, by buffer
};

}  // namespace

void MomentBytes::add(Term term, std::int64_t bytes) {
  (*this)[term] += bytes;
  total += bytes;
}

MomentBytes& MomentBytes::operator+=(const MomentBytes& other) {
  for (std::size_t t = 0; t < terms.size(); ++t) terms[t] += other.terms[t];
  total += other.total;
  return *this;
}

MomentBytes& MomentBytes::operator-=(const MomentBytes& other) {
  for (std::size_t t = 0; t < terms.size(); ++t) terms[t] -= other.terms[t];
  total -= other.total;
  return *this;
}

MomentBytes operator*(MomentBytes bytes, std::int64_t times) {
  for (std::int64_t& term : bytes.terms) term *= times;
  bytes.total *= times;
  return bytes;
}

void ProfiledPart::find_peak() {
  const auto highest = std::max_element(moments.begin(), moments.end(),
                                        [](const MomentBytes& a, const MomentBytes& b) { return a.total < b.total; });
  peak = static_cast<std::size_t>(highest - moments.begin());
}

MemoryProfile profile_memory(const Workload& workload, const Knobs& knobs) {
  const bool groups = knobs.checkpointing == Checkpointing::kFull;
  Workload small = workload;
  small.model.layers = groups ? 4 : 2;
  small.dialect = Dialect::kCanonical;
  small.train_batch_size.reset();
  small.gradient_clipping = 0.0;
  ClusterSpec cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = knobs.tensor_ranks;
  const std::string checkpointing = groups                                             ? std::string("full")
                                    : knobs.checkpointing == Checkpointing::kSelective ? "selective"
                                                                                       : "none";
  const StepPlan plan = build_plan(small, cluster,
                                   {{"tensor_parallel", knobs.tensor_ranks},
                                    {"sequence_parallel", knobs.sequence_parallel},
                                    {"activation_checkpointing", checkpointing},
                                    {"activation_checkpointing_layers", std::int64_t{2}}});
  return ProfileReader(plan, groups).read();
}

}  // namespace krigtune

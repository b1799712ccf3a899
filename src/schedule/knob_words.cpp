// The words of a session for what knobs.h enumerates.
#include <cassert>
#include <string>

#include "schedule/knobs.h"

namespace krigtune::schedule {

const char* to_string(Checkpointing checkpointing) {
  switch (checkpointing) {
    case Checkpointing::kNone:
      return "none";
    case Checkpointing::kSelective:
      return "selective";
    case Checkpointing::kFull:
      return "full";
  }
  assert(false);
  return "";
}

std::string Modules::text() const {
  std::string text;
  for (int m = 0; m < kModuleCount; ++m) {
    const auto module = static_cast<Module>(m);
    if (!has(module)) continue;
    if (!text.empty()) text += '+';
    text += to_string(module);
  }
  return text;
}

const char* to_string(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::kOneForwardOneBackward:
      return "1f1b";
    case PipelineSchedule::kGpipe:
      return "gpipe";
    case PipelineSchedule::kZeroBubbleH1:
      return "zb-h1";
    case PipelineSchedule::kZeroBubbleH2:
      return "zb-h2";
    case PipelineSchedule::kZeroBubbleV:
      return "zb-v";
    case PipelineSchedule::kVHalf:
      return "v-half";
    case PipelineSchedule::kVMin:
      return "v-min";
    case PipelineSchedule::kDualPipeV:
      return "dualpipe-v";
  }
  assert(false);
  return "";
}

const char* to_string(ContextKind kind) {
  switch (kind) {
    case ContextKind::kRing:
      return "ring";
    case ContextKind::kAllGather:
      return "allgather";
    case ContextKind::kAllToAll:
      return "alltoall";
    case ContextKind::kAllToAllAndRing:
      return "alltoall+ring";
  }
  assert(false);
  return "";
}

const char* to_string(TokenDispatch dispatch) {
  switch (dispatch) {
    case TokenDispatch::kAllToAll:
      return "alltoall";
    case TokenDispatch::kAllGather:
      return "allgather";
    case TokenDispatch::kOncePerNode:
      return "flex";
  }
  assert(false);
  return "";
}

const char* to_string(NcclKnobs::Buffers buffers) {
  switch (buffers) {
    case NcclKnobs::Buffers::kPlain:
      return "plain";
    case NcclKnobs::Buffers::kRegistered:
      return "registered";
    case NcclKnobs::Buffers::kSymmetric:
      return "symmetric";
    case NcclKnobs::Buffers::kCopyEngines:
      return "copy_engines";
  }
  assert(false);
  return "";
}

}  // namespace krigtune::schedule

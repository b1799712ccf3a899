#pragma once

namespace krigtune {

/// Names of the parameters that code mentions by name: each stands here once, so that a slip of the pen is an error of
/// the compiler. What they mean stands in well_known_parameters().
inline constexpr const char* kZeroStage = "zero_stage";
inline constexpr const char* kMicroBatch = "micro_batch";
inline constexpr const char* kAccumulation = "gradient_accumulation_steps";
inline constexpr const char* kReduceBucket = "reduce_bucket_size";
inline constexpr const char* kAllgatherBucket = "allgather_bucket_size";
inline constexpr const char* kOverlap = "overlap_comm";
inline constexpr const char* kContiguousGradients = "contiguous_gradients";
inline constexpr const char* kTensorParallel = "tensor_parallel";
inline constexpr const char* kPipelineParallel = "pipeline_parallel";
inline constexpr const char* kSequenceParallel = "sequence_parallel";
inline constexpr const char* kCheckpointing = "activation_checkpointing";
inline constexpr const char* kCheckpointLayers = "activation_checkpointing_layers";
inline constexpr const char* kOffloadOptimizer = "offload_optimizer";
inline constexpr const char* kOffloadParam = "offload_param";
inline constexpr const char* kPrefetch = "stage3_prefetch_bucket_size";
inline constexpr const char* kPersistence = "stage3_param_persistence_threshold";
inline constexpr const char* kMaxLive = "stage3_max_live_parameters";
inline constexpr const char* kMaxReuse = "stage3_max_reuse_distance";

}  // namespace krigtune

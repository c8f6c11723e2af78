/* The MPI calls that are recorded, and what they are called in Paraver traces.
 *
 * X(name, number, event type, value, family)
 *
 * number      what `call` of a record holds: small, so that it is an index; never reused
 * event type  50000001 messages, 50000002 collective, 50000003 other, 50000004 one-sided,
 *             50000005 I/O
 * value       of that event: Extrae's number of the call where Extrae has one, so that every tool
 *             of the Paraver world knows it; calls that it does not know count from 1001. It writes
 *             MPI_Init_thread as MPI_Init, therefore two calls share 31.
 * family      which wrappers it has: message, probe, completion, collective, icollective,
 *             neighbour, process, communicator, buffer, rma, io, persistent
 *
 * Large-count variants (MPI_Send_c) have the number of the plain call.
 */
#ifndef POPMODEL_CALLS_H
#define POPMODEL_CALLS_H

/* clang-format off */
#define POPMODEL_CALLS(X) \
    /* Messages. */                                                              \
    X(Send, 1, 50000001, 1, message)                                             \
    X(Bsend, 2, 50000001, 33, message)                                           \
    X(Ssend, 3, 50000001, 34, message)                                           \
    X(Rsend, 4, 50000001, 35, message)                                           \
    X(Recv, 5, 50000001, 2, message)                                             \
    X(Sendrecv, 6, 50000001, 41, message)                                        \
    X(Sendrecv_replace, 7, 50000001, 42, message)                                \
    X(Isend, 8, 50000001, 3, message)                                            \
    X(Ibsend, 9, 50000001, 36, message)                                          \
    X(Issend, 10, 50000001, 37, message)                                         \
    X(Irsend, 11, 50000001, 38, message)                                         \
    X(Irecv, 12, 50000001, 4, message)                                           \
    X(Isendrecv, 13, 50000001, 1001, message)                                    \
    X(Isendrecv_replace, 14, 50000001, 1002, message)                            \
    X(Mrecv, 15, 50000001, 192, message)                                         \
    X(Imrecv, 16, 50000001, 193, message)                                        \
    /* Persistent messages. */                                                   \
    X(Send_init, 17, 50000001, 117, message)                                     \
    X(Bsend_init, 18, 50000001, 112, message)                                    \
    X(Ssend_init, 19, 50000001, 122, message)                                    \
    X(Rsend_init, 20, 50000001, 121, message)                                    \
    X(Recv_init, 21, 50000001, 116, message)                                     \
    X(Start, 22, 50000003, 123, message)                                         \
    X(Startall, 23, 50000003, 124, message)                                      \
    /* Looking for messages. */                                                  \
    X(Probe, 24, 50000001, 61, probe)                                            \
    X(Iprobe, 25, 50000001, 62, probe)                                           \
    X(Mprobe, 26, 50000001, 190, probe)                                          \
    X(Improbe, 27, 50000001, 191, probe)                                         \
    /* Ends of requests. */                                                      \
    X(Wait, 28, 50000001, 5, completion)                                         \
    X(Waitall, 29, 50000001, 6, completion)                                      \
    X(Waitany, 30, 50000001, 59, completion)                                     \
    X(Waitsome, 31, 50000001, 60, completion)                                    \
    X(Test, 32, 50000003, 39, completion)                                        \
    X(Testall, 33, 50000003, 125, completion)                                    \
    X(Testany, 34, 50000003, 126, completion)                                    \
    X(Testsome, 35, 50000003, 128, completion)                                   \
    X(Request_get_status, 36, 50000003, 153, completion)                         \
    X(Request_free, 37, 50000003, 115, completion)                               \
    X(Cancel, 38, 50000001, 40, completion)                                      \
    /* Blocking collective operations. */                                        \
    X(Barrier, 39, 50000002, 8, collective)                                      \
    X(Bcast, 40, 50000002, 7, collective)                                        \
    X(Reduce, 41, 50000002, 9, collective)                                       \
    X(Allreduce, 42, 50000002, 10, collective)                                   \
    X(Reduce_scatter, 43, 50000002, 80, collective)                              \
    X(Reduce_scatter_block, 44, 50000002, 168, collective)                       \
    X(Scan, 45, 50000002, 30, collective)                                        \
    X(Exscan, 46, 50000002, 1003, collective)                                    \
    X(Gather, 47, 50000002, 13, collective)                                      \
    X(Gatherv, 48, 50000002, 14, collective)                                     \
    X(Scatter, 49, 50000002, 15, collective)                                     \
    X(Scatterv, 50, 50000002, 16, collective)                                    \
    X(Allgather, 51, 50000002, 17, collective)                                   \
    X(Allgatherv, 52, 50000002, 18, collective)                                  \
    X(Alltoall, 53, 50000002, 11, collective)                                    \
    X(Alltoallv, 54, 50000002, 12, collective)                                   \
    X(Alltoallw, 55, 50000002, 170, collective)                                  \
    /* The same, nonblocking. */                                                 \
    X(Ibarrier, 56, 50000002, 156, icollective)                                  \
    X(Ibcast, 57, 50000002, 157, icollective)                                    \
    X(Ireduce, 58, 50000002, 154, icollective)                                   \
    X(Iallreduce, 59, 50000002, 155, icollective)                                \
    X(Ireduce_scatter, 60, 50000002, 166, icollective)                           \
    X(Ireduce_scatter_block, 61, 50000002, 169, icollective)                     \
    X(Iscan, 62, 50000002, 167, icollective)                                     \
    X(Iexscan, 63, 50000002, 1004, icollective)                                  \
    X(Igather, 64, 50000002, 162, icollective)                                   \
    X(Igatherv, 65, 50000002, 163, icollective)                                  \
    X(Iscatter, 66, 50000002, 164, icollective)                                  \
    X(Iscatterv, 67, 50000002, 165, icollective)                                 \
    X(Iallgather, 68, 50000002, 160, icollective)                                \
    X(Iallgatherv, 69, 50000002, 161, icollective)                               \
    X(Ialltoall, 70, 50000002, 158, icollective)                                 \
    X(Ialltoallv, 71, 50000002, 159, icollective)                                \
    X(Ialltoallw, 72, 50000002, 171, icollective)                                \
    /* Collective operations between neighbours: timed only. */                  \
    X(Neighbor_allgather, 73, 50000002, 174, neighbour)                          \
    X(Neighbor_allgatherv, 74, 50000002, 176, neighbour)                         \
    X(Neighbor_alltoall, 75, 50000002, 178, neighbour)                           \
    X(Neighbor_alltoallv, 76, 50000002, 180, neighbour)                          \
    X(Neighbor_alltoallw, 77, 50000002, 182, neighbour)                          \
    X(Ineighbor_allgather, 78, 50000002, 175, neighbour)                         \
    X(Ineighbor_allgatherv, 79, 50000002, 177, neighbour)                        \
    X(Ineighbor_alltoall, 80, 50000002, 179, neighbour)                          \
    X(Ineighbor_alltoallv, 81, 50000002, 181, neighbour)                         \
    X(Ineighbor_alltoallw, 82, 50000002, 183, neighbour)                         \
    /* Start and end. */                                                         \
    X(Init, 83, 50000003, 31, process)                                           \
    X(Init_thread, 84, 50000003, 31, process)                                    \
    X(Finalize, 85, 50000003, 32, process)                                       \
    X(Abort, 86, 50000003, 100, process)                                         \
    /* Communicators. */                                                         \
    X(Comm_create, 87, 50000003, 21, communicator)                               \
    X(Comm_create_group, 88, 50000003, 1005, communicator)                       \
    X(Comm_create_from_group, 89, 50000003, 1006, communicator)                  \
    X(Comm_dup, 90, 50000003, 22, communicator)                                  \
    X(Comm_dup_with_info, 91, 50000003, 1007, communicator)                      \
    X(Comm_idup, 92, 50000003, 1008, communicator)                               \
    X(Comm_idup_with_info, 93, 50000003, 1009, communicator)                     \
    X(Comm_split, 94, 50000003, 23, communicator)                                \
    X(Comm_split_type, 95, 50000003, 1010, communicator)                         \
    X(Cart_create, 96, 50000003, 43, communicator)                               \
    X(Cart_sub, 97, 50000003, 49, communicator)                                  \
    X(Graph_create, 98, 50000003, 54, communicator)                              \
    X(Dist_graph_create, 99, 50000003, 173, communicator)                        \
    X(Dist_graph_create_adjacent, 100, 50000003, 1011, communicator)             \
    X(Intercomm_create, 101, 50000003, 96, communicator)                         \
    X(Intercomm_create_from_groups, 102, 50000003, 1012, communicator)           \
    X(Intercomm_merge, 103, 50000003, 97, communicator)                          \
    X(Comm_free, 104, 50000003, 25, communicator)                                \
    X(Comm_disconnect, 105, 50000003, 1013, communicator)                        \
    X(Comm_spawn, 106, 50000003, 151, communicator)                              \
    X(Comm_spawn_multiple, 107, 50000003, 152, communicator)                     \
    X(Comm_accept, 108, 50000003, 1014, communicator)                            \
    X(Comm_connect, 109, 50000003, 1015, communicator)                           \
    X(Comm_join, 110, 50000003, 1016, communicator)                              \
    /* Buffers of MPI_Bsend. */                                                  \
    X(Buffer_attach, 111, 50000003, 113, buffer)                                 \
    X(Buffer_detach, 112, 50000003, 114, buffer)                                 \
    /* One-sided communication: timed only. */                                   \
    X(Win_create, 113, 50000004, 63, rma)                                        \
    X(Win_allocate, 114, 50000004, 1017, rma)                                    \
    X(Win_allocate_shared, 115, 50000004, 1018, rma)                             \
    X(Win_create_dynamic, 116, 50000004, 1019, rma)                              \
    X(Win_attach, 117, 50000004, 1020, rma)                                      \
    X(Win_detach, 118, 50000004, 1021, rma)                                      \
    X(Win_free, 119, 50000004, 64, rma)                                          \
    X(Put, 120, 50000004, 65, rma)                                               \
    X(Get, 121, 50000004, 66, rma)                                               \
    X(Accumulate, 122, 50000004, 67, rma)                                        \
    X(Get_accumulate, 123, 50000004, 172, rma)                                   \
    X(Fetch_and_op, 124, 50000004, 184, rma)                                     \
    X(Compare_and_swap, 125, 50000004, 185, rma)                                 \
    X(Rput, 126, 50000004, 1022, rma)                                            \
    X(Rget, 127, 50000004, 1023, rma)                                            \
    X(Raccumulate, 128, 50000004, 1024, rma)                                     \
    X(Rget_accumulate, 129, 50000004, 1025, rma)                                 \
    X(Win_fence, 130, 50000004, 68, rma)                                         \
    X(Win_start, 131, 50000004, 69, rma)                                         \
    X(Win_complete, 132, 50000004, 70, rma)                                      \
    X(Win_post, 133, 50000004, 71, rma)                                          \
    X(Win_wait, 134, 50000004, 72, rma)                                          \
    X(Win_test, 135, 50000004, 73, rma)                                          \
    X(Win_lock, 136, 50000004, 74, rma)                                          \
    X(Win_unlock, 137, 50000004, 75, rma)                                        \
    X(Win_lock_all, 138, 50000004, 1026, rma)                                    \
    X(Win_unlock_all, 139, 50000004, 1027, rma)                                  \
    X(Win_flush, 140, 50000004, 186, rma)                                        \
    X(Win_flush_all, 141, 50000004, 187, rma)                                    \
    X(Win_flush_local, 142, 50000004, 188, rma)                                  \
    X(Win_flush_local_all, 143, 50000004, 189, rma)                              \
    X(Win_sync, 144, 50000004, 1028, rma)                                        \
    /* Files: timed only. */                                                     \
    X(File_open, 145, 50000005, 141, io)                                         \
    X(File_close, 146, 50000005, 142, io)                                        \
    X(File_delete, 147, 50000005, 1029, io)                                      \
    X(File_set_size, 148, 50000005, 1030, io)                                    \
    X(File_preallocate, 149, 50000005, 1031, io)                                 \
    X(File_set_view, 150, 50000005, 1032, io)                                    \
    X(File_sync, 151, 50000005, 1033, io)                                        \
    X(File_seek_shared, 152, 50000005, 1034, io)                                 \
    X(File_read, 153, 50000005, 143, io)                                         \
    X(File_read_all, 154, 50000005, 144, io)                                     \
    X(File_write, 155, 50000005, 145, io)                                        \
    X(File_write_all, 156, 50000005, 146, io)                                    \
    X(File_read_at, 157, 50000005, 147, io)                                      \
    X(File_read_at_all, 158, 50000005, 148, io)                                  \
    X(File_write_at, 159, 50000005, 149, io)                                     \
    X(File_write_at_all, 160, 50000005, 150, io)                                 \
    X(File_read_shared, 161, 50000005, 1035, io)                                 \
    X(File_write_shared, 162, 50000005, 1036, io)                                \
    X(File_read_ordered, 163, 50000005, 1037, io)                                \
    X(File_write_ordered, 164, 50000005, 1038, io)                               \
    X(File_iread, 165, 50000005, 1039, io)                                       \
    X(File_iread_all, 166, 50000005, 1040, io)                                   \
    X(File_iread_at, 167, 50000005, 1041, io)                                    \
    X(File_iread_at_all, 168, 50000005, 1042, io)                                \
    X(File_iread_shared, 169, 50000005, 1043, io)                                \
    X(File_iwrite, 170, 50000005, 1044, io)                                      \
    X(File_iwrite_all, 171, 50000005, 1045, io)                                  \
    X(File_iwrite_at, 172, 50000005, 1046, io)                                   \
    X(File_iwrite_at_all, 173, 50000005, 1047, io)                               \
    X(File_iwrite_shared, 174, 50000005, 1048, io)                               \
    X(File_read_all_begin, 175, 50000005, 1049, io)                              \
    X(File_read_all_end, 176, 50000005, 1050, io)                                \
    X(File_read_at_all_begin, 177, 50000005, 1051, io)                           \
    X(File_read_at_all_end, 178, 50000005, 1052, io)                             \
    X(File_read_ordered_begin, 179, 50000005, 1053, io)                          \
    X(File_read_ordered_end, 180, 50000005, 1054, io)                            \
    X(File_write_all_begin, 181, 50000005, 1055, io)                             \
    X(File_write_all_end, 182, 50000005, 1056, io)                               \
    X(File_write_at_all_begin, 183, 50000005, 1057, io)                          \
    X(File_write_at_all_end, 184, 50000005, 1058, io)                            \
    X(File_write_ordered_begin, 185, 50000005, 1059, io)                         \
    X(File_write_ordered_end, 186, 50000005, 1060, io)                           \
    /* Persistent collective operations and partitioned messages: timed only. */ \
    X(Barrier_init, 187, 50000003, 1061, persistent)                             \
    X(Bcast_init, 188, 50000003, 1062, persistent)                               \
    X(Reduce_init, 189, 50000003, 1063, persistent)                              \
    X(Allreduce_init, 190, 50000003, 1064, persistent)                           \
    X(Reduce_scatter_init, 191, 50000003, 1065, persistent)                      \
    X(Reduce_scatter_block_init, 192, 50000003, 1066, persistent)                \
    X(Scan_init, 193, 50000003, 1067, persistent)                                \
    X(Exscan_init, 194, 50000003, 1068, persistent)                              \
    X(Gather_init, 195, 50000003, 1069, persistent)                              \
    X(Gatherv_init, 196, 50000003, 1070, persistent)                             \
    X(Scatter_init, 197, 50000003, 1071, persistent)                             \
    X(Scatterv_init, 198, 50000003, 1072, persistent)                            \
    X(Allgather_init, 199, 50000003, 1073, persistent)                           \
    X(Allgatherv_init, 200, 50000003, 1074, persistent)                          \
    X(Alltoall_init, 201, 50000003, 1075, persistent)                            \
    X(Alltoallv_init, 202, 50000003, 1076, persistent)                           \
    X(Alltoallw_init, 203, 50000003, 1077, persistent)                           \
    X(Neighbor_allgather_init, 204, 50000003, 1078, persistent)                  \
    X(Neighbor_allgatherv_init, 205, 50000003, 1079, persistent)                 \
    X(Neighbor_alltoall_init, 206, 50000003, 1080, persistent)                   \
    X(Neighbor_alltoallv_init, 207, 50000003, 1081, persistent)                  \
    X(Neighbor_alltoallw_init, 208, 50000003, 1082, persistent)                  \
    X(Psend_init, 209, 50000003, 1083, persistent)                               \
    X(Precv_init, 210, 50000003, 1084, persistent)                               \
    X(Pready, 211, 50000003, 1085, persistent)                                   \
    X(Pready_range, 212, 50000003, 1086, persistent)                             \
    X(Pready_list, 213, 50000003, 1087, persistent)                              \
    X(Parrived, 214, 50000003, 1088, persistent)
/* clang-format on */

enum call {
#define X(name, number, type, value, family) CALL_##name = number,
    POPMODEL_CALLS(X)
#undef X
        CALLS /* one more than the last */
};

#endif

/* What source code sees of MPI while popmodel reads it: names and types, nothing to link with. */
#ifndef POPMODEL_MPI_H
#define POPMODEL_MPI_H
#include <stddef.h>
typedef struct popmodel_comm *MPI_Comm;
typedef struct popmodel_type *MPI_Datatype;
typedef struct popmodel_op *MPI_Op;
typedef struct popmodel_request *MPI_Request;
typedef struct popmodel_group *MPI_Group;
typedef struct popmodel_info *MPI_Info;
typedef struct popmodel_win *MPI_Win;
typedef struct popmodel_file *MPI_File;
typedef struct popmodel_errhandler *MPI_Errhandler;
typedef struct popmodel_message *MPI_Message;
typedef ptrdiff_t MPI_Aint;
typedef long long MPI_Offset, MPI_Count;
typedef int MPI_Fint;
typedef void MPI_User_function(void *, void *, int *, MPI_Datatype *);
typedef void MPI_Handler_function(MPI_Comm *, int *, ...), MPI_Comm_errhandler_function(MPI_Comm *, int *, ...), MPI_Comm_errhandler_fn(MPI_Comm *, int *, ...);
typedef struct { int MPI_SOURCE, MPI_TAG, MPI_ERROR; } MPI_Status;
extern MPI_Comm MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL;
extern MPI_Datatype MPI_CHAR, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_BYTE, MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_INT, MPI_UNSIGNED, MPI_LONG, MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_LONG_LONG_INT, MPI_UNSIGNED_LONG_LONG, MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_WCHAR, MPI_C_BOOL, MPI_CXX_BOOL, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_AINT, MPI_OFFSET, MPI_COUNT, MPI_C_COMPLEX, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_CXX_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_DOUBLE_INT, MPI_FLOAT_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_2INT, MPI_PACKED, MPI_INTEGER, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_LOGICAL, MPI_CHARACTER, MPI_INTEGER4, MPI_INTEGER8, MPI_REAL4, MPI_REAL8, MPI_DATATYPE_NULL;
extern MPI_Op MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP, MPI_OP_NULL;
extern MPI_Request MPI_REQUEST_NULL;
extern MPI_Info MPI_INFO_NULL;
extern MPI_Group MPI_GROUP_NULL, MPI_GROUP_EMPTY;
extern MPI_Win MPI_WIN_NULL;
extern MPI_File MPI_FILE_NULL;
extern MPI_Message MPI_MESSAGE_NULL, MPI_MESSAGE_NO_PROC;
extern MPI_Errhandler MPI_ERRORS_RETURN, MPI_ERRORS_ARE_FATAL;
extern MPI_Status *MPI_STATUS_IGNORE, *MPI_STATUSES_IGNORE;
extern int *MPI_UNWEIGHTED, *MPI_ERRCODES_IGNORE;
extern void *MPI_IN_PLACE, *MPI_BOTTOM;
enum { MPI_SUCCESS = 0, MPI_PROC_NULL = -2, MPI_ANY_SOURCE = -3, MPI_ANY_TAG = -3, MPI_ROOT = -4,
       MPI_UNDEFINED = -32766, MPI_ERR_OTHER = 15, MPI_COMM_TYPE_SHARED = 1,
       MPI_THREAD_SINGLE = 0, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE,
       MPI_MAX_PROCESSOR_NAME = 256, MPI_MAX_ERROR_STRING = 512, MPI_MAX_PORT_NAME = 1024,
       MPI_VERSION = 4, MPI_SUBVERSION = 0, MPI_ORDER_C = 1, MPI_ORDER_FORTRAN = 2,
       MPI_LOCK_EXCLUSIVE = 1, MPI_LOCK_SHARED = 2, MPI_TAG_UB = 1, MPI_WTIME_IS_GLOBAL = 2,
       MPI_ERR_COMM = 5, MPI_ERR_ARG = 12, MPI_ERR_TRUNCATE = 14, MPI_ERR_IN_STATUS = 17, MPI_ERR_LASTCODE = 92,
       MPI_SEEK_SET = 600, MPI_SEEK_CUR = 602, MPI_SEEK_END = 604, MPI_BSEND_OVERHEAD = 128, MPI_CART = 1, MPI_GRAPH = 2,
       MPI_IDENT = 0, MPI_CONGRUENT = 1, MPI_SIMILAR = 2, MPI_UNEQUAL = 3, MPI_MAX_OBJECT_NAME = 64, MPI_MAX_INFO_KEY = 36,
       MPI_MAX_INFO_VAL = 256, MPI_MAX_LIBRARY_VERSION_STRING = 256, MPI_WIN_BASE = 1, MPI_WIN_SIZE = 3, MPI_HOST = 3,
       MPI_MODE_NOCHECK = 1024, MPI_MODE_NOPRECEDE = 8192, MPI_MODE_NOPUT = 4096, MPI_MODE_NOSTORE = 2048,
       MPI_MODE_NOSUCCEED = 16384, MPI_MODE_APPEND = 128, MPI_MODE_EXCL = 64, MPI_MODE_DELETE_ON_CLOSE = 16,
       MPI_MODE_CREATE = 1, MPI_MODE_RDONLY = 2, MPI_MODE_WRONLY = 4, MPI_MODE_RDWR = 8 };
#ifdef __cplusplus
extern "C" {
#endif
double MPI_Wtime(void);
double MPI_Wtick(void);
int MPI_Init(int *, char ***);
int MPI_Init_thread(int *, char ***, int, int *);
int MPI_Initialized(int *);
int MPI_Finalized(int *);
int MPI_Finalize(void);
int MPI_Abort(MPI_Comm, int);
int MPI_Comm_rank(MPI_Comm, int *);
int MPI_Comm_size(MPI_Comm, int *);
int MPI_Comm_dup(MPI_Comm, MPI_Comm *);
int MPI_Comm_split(MPI_Comm, int, int, MPI_Comm *);
int MPI_Comm_split_type(MPI_Comm, int, int, MPI_Info, MPI_Comm *);
int MPI_Comm_free(MPI_Comm *);
int MPI_Comm_group(MPI_Comm, MPI_Group *);
int MPI_Comm_create(MPI_Comm, MPI_Group, MPI_Comm *);
int MPI_Cart_create(MPI_Comm, int, const int *, const int *, int, MPI_Comm *);
int MPI_Cart_coords(MPI_Comm, int, int, int *);
int MPI_Cart_get(MPI_Comm, int, int *, int *, int *);
int MPI_Cart_rank(MPI_Comm, const int *, int *);
int MPI_Cart_shift(MPI_Comm, int, int, int *, int *);
int MPI_Cart_sub(MPI_Comm, const int *, MPI_Comm *);
int MPI_Dims_create(int, int, int *);
int MPI_Send(const void *, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Ssend(const void *, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Bsend(const void *, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Rsend(const void *, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Recv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
int MPI_Isend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Issend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Irsend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Irecv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Send_init(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Recv_init(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Start(MPI_Request *);
int MPI_Startall(int, MPI_Request *);
int MPI_Request_free(MPI_Request *);
int MPI_Sendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
int MPI_Sendrecv_replace(void *, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Status *);
int MPI_Wait(MPI_Request *, MPI_Status *);
int MPI_Waitall(int, MPI_Request *, MPI_Status *);
int MPI_Waitany(int, MPI_Request *, int *, MPI_Status *);
int MPI_Waitsome(int, MPI_Request *, int *, int *, MPI_Status *);
int MPI_Test(MPI_Request *, int *, MPI_Status *);
int MPI_Testall(int, MPI_Request *, int *, MPI_Status *);
int MPI_Probe(int, int, MPI_Comm, MPI_Status *);
int MPI_Iprobe(int, int, MPI_Comm, int *, MPI_Status *);
int MPI_Get_count(const MPI_Status *, MPI_Datatype, int *);
int MPI_Barrier(MPI_Comm);
int MPI_Bcast(void *, int, MPI_Datatype, int, MPI_Comm);
int MPI_Reduce(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
int MPI_Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Iallreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *);
int MPI_Ibarrier(MPI_Comm, MPI_Request *);
int MPI_Ibcast(void *, int, MPI_Datatype, int, MPI_Comm, MPI_Request *);
int MPI_Scan(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Exscan(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Gather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
int MPI_Gatherv(const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, int, MPI_Comm);
int MPI_Scatter(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
int MPI_Scatterv(const void *, const int *, const int *, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
int MPI_Allgather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
int MPI_Allgatherv(const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, MPI_Comm);
int MPI_Alltoall(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
int MPI_Alltoallv(const void *, const int *, const int *, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, MPI_Comm);
int MPI_Reduce_scatter(const void *, void *, const int *, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Reduce_scatter_block(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Type_contiguous(int, MPI_Datatype, MPI_Datatype *);
int MPI_Type_vector(int, int, int, MPI_Datatype, MPI_Datatype *);
int MPI_Type_commit(MPI_Datatype *);
int MPI_Type_free(MPI_Datatype *);
int MPI_Type_size(MPI_Datatype, int *);
int MPI_Pack(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);
int MPI_Unpack(const void *, int, int *, void *, int, MPI_Datatype, MPI_Comm);
int MPI_Get_processor_name(char *, int *);
int MPI_Op_create(void (*)(void *, void *, int *, MPI_Datatype *), int, MPI_Op *);
int MPI_Op_free(MPI_Op *);
/* The others, whatever they are given. */
#ifdef __cplusplus
#define POPMODEL_ANY (...)
#else
#define POPMODEL_ANY ()
#endif
int MPI_Errhandler_set POPMODEL_ANY, MPI_Errhandler_create POPMODEL_ANY, MPI_Errhandler_free POPMODEL_ANY,
    MPI_Errhandler_get POPMODEL_ANY, MPI_Comm_set_errhandler POPMODEL_ANY,
    MPI_Comm_get_errhandler POPMODEL_ANY, MPI_Comm_create_errhandler POPMODEL_ANY,
    MPI_Comm_call_errhandler POPMODEL_ANY, MPI_Win_set_errhandler POPMODEL_ANY,
    MPI_File_set_errhandler POPMODEL_ANY, MPI_Error_string POPMODEL_ANY, MPI_Error_class POPMODEL_ANY,
    MPI_Comm_create_group POPMODEL_ANY, MPI_Comm_idup POPMODEL_ANY, MPI_Comm_compare POPMODEL_ANY,
    MPI_Comm_set_name POPMODEL_ANY, MPI_Comm_get_name POPMODEL_ANY, MPI_Comm_test_inter POPMODEL_ANY,
    MPI_Comm_remote_size POPMODEL_ANY, MPI_Comm_remote_group POPMODEL_ANY, MPI_Comm_get_parent POPMODEL_ANY,
    MPI_Comm_spawn POPMODEL_ANY, MPI_Comm_accept POPMODEL_ANY, MPI_Comm_connect POPMODEL_ANY,
    MPI_Comm_disconnect POPMODEL_ANY, MPI_Comm_dup_with_info POPMODEL_ANY, MPI_Comm_set_info POPMODEL_ANY,
    MPI_Comm_get_attr POPMODEL_ANY, MPI_Comm_set_attr POPMODEL_ANY, MPI_Comm_create_keyval POPMODEL_ANY,
    MPI_Comm_free_keyval POPMODEL_ANY, MPI_Comm_delete_attr POPMODEL_ANY, MPI_Intercomm_create POPMODEL_ANY,
    MPI_Intercomm_merge POPMODEL_ANY, MPI_Group_incl POPMODEL_ANY, MPI_Group_excl POPMODEL_ANY,
    MPI_Group_free POPMODEL_ANY, MPI_Group_size POPMODEL_ANY, MPI_Group_rank POPMODEL_ANY,
    MPI_Group_union POPMODEL_ANY, MPI_Group_intersection POPMODEL_ANY, MPI_Group_difference POPMODEL_ANY,
    MPI_Group_range_incl POPMODEL_ANY, MPI_Group_range_excl POPMODEL_ANY,
    MPI_Group_translate_ranks POPMODEL_ANY, MPI_Group_compare POPMODEL_ANY, MPI_Cart_map POPMODEL_ANY,
    MPI_Cartdim_get POPMODEL_ANY, MPI_Graph_create POPMODEL_ANY, MPI_Graph_neighbors POPMODEL_ANY,
    MPI_Graph_neighbors_count POPMODEL_ANY, MPI_Topo_test POPMODEL_ANY, MPI_Dist_graph_create POPMODEL_ANY,
    MPI_Dist_graph_create_adjacent POPMODEL_ANY, MPI_Dist_graph_neighbors POPMODEL_ANY,
    MPI_Dist_graph_neighbors_count POPMODEL_ANY, MPI_Neighbor_allgather POPMODEL_ANY,
    MPI_Neighbor_allgatherv POPMODEL_ANY, MPI_Neighbor_alltoall POPMODEL_ANY,
    MPI_Neighbor_alltoallv POPMODEL_ANY, MPI_Neighbor_alltoallw POPMODEL_ANY,
    MPI_Ineighbor_allgather POPMODEL_ANY, MPI_Ineighbor_alltoall POPMODEL_ANY,
    MPI_Ineighbor_alltoallv POPMODEL_ANY, MPI_Ibsend POPMODEL_ANY, MPI_Bsend_init POPMODEL_ANY,
    MPI_Ssend_init POPMODEL_ANY, MPI_Rsend_init POPMODEL_ANY, MPI_Mprobe POPMODEL_ANY,
    MPI_Improbe POPMODEL_ANY, MPI_Mrecv POPMODEL_ANY, MPI_Imrecv POPMODEL_ANY, MPI_Cancel POPMODEL_ANY,
    MPI_Test_cancelled POPMODEL_ANY, MPI_Testany POPMODEL_ANY, MPI_Testsome POPMODEL_ANY,
    MPI_Request_get_status POPMODEL_ANY, MPI_Buffer_attach POPMODEL_ANY, MPI_Buffer_detach POPMODEL_ANY,
    MPI_Get_elements POPMODEL_ANY, MPI_Status_set_error POPMODEL_ANY, MPI_Status_set_elements POPMODEL_ANY,
    MPI_Status_set_cancelled POPMODEL_ANY, MPI_Psend_init POPMODEL_ANY, MPI_Precv_init POPMODEL_ANY,
    MPI_Pready POPMODEL_ANY, MPI_Ireduce POPMODEL_ANY, MPI_Igather POPMODEL_ANY, MPI_Igatherv POPMODEL_ANY,
    MPI_Iscatter POPMODEL_ANY, MPI_Iscatterv POPMODEL_ANY, MPI_Iallgather POPMODEL_ANY,
    MPI_Iallgatherv POPMODEL_ANY, MPI_Ialltoall POPMODEL_ANY, MPI_Ialltoallv POPMODEL_ANY,
    MPI_Ialltoallw POPMODEL_ANY, MPI_Ireduce_scatter POPMODEL_ANY, MPI_Ireduce_scatter_block POPMODEL_ANY,
    MPI_Iscan POPMODEL_ANY, MPI_Iexscan POPMODEL_ANY, MPI_Alltoallw POPMODEL_ANY,
    MPI_Reduce_local POPMODEL_ANY, MPI_Type_create_hvector POPMODEL_ANY, MPI_Type_hvector POPMODEL_ANY,
    MPI_Type_indexed POPMODEL_ANY, MPI_Type_hindexed POPMODEL_ANY, MPI_Type_create_hindexed POPMODEL_ANY,
    MPI_Type_create_indexed_block POPMODEL_ANY, MPI_Type_create_hindexed_block POPMODEL_ANY,
    MPI_Type_create_struct POPMODEL_ANY, MPI_Type_struct POPMODEL_ANY, MPI_Type_create_subarray POPMODEL_ANY,
    MPI_Type_create_darray POPMODEL_ANY, MPI_Type_create_resized POPMODEL_ANY, MPI_Type_dup POPMODEL_ANY,
    MPI_Type_extent POPMODEL_ANY, MPI_Type_lb POPMODEL_ANY, MPI_Type_ub POPMODEL_ANY,
    MPI_Type_get_extent POPMODEL_ANY, MPI_Type_get_true_extent POPMODEL_ANY, MPI_Type_set_name POPMODEL_ANY,
    MPI_Type_get_name POPMODEL_ANY, MPI_Type_create_f90_real POPMODEL_ANY,
    MPI_Type_create_f90_integer POPMODEL_ANY, MPI_Type_match_size POPMODEL_ANY, MPI_Get_address POPMODEL_ANY,
    MPI_Address POPMODEL_ANY, MPI_Aint_add POPMODEL_ANY, MPI_Aint_diff POPMODEL_ANY,
    MPI_Pack_size POPMODEL_ANY, MPI_Pack_external POPMODEL_ANY, MPI_Unpack_external POPMODEL_ANY,
    MPI_Win_create POPMODEL_ANY, MPI_Win_allocate POPMODEL_ANY, MPI_Win_allocate_shared POPMODEL_ANY,
    MPI_Win_shared_query POPMODEL_ANY, MPI_Win_create_dynamic POPMODEL_ANY, MPI_Win_attach POPMODEL_ANY,
    MPI_Win_detach POPMODEL_ANY, MPI_Win_free POPMODEL_ANY, MPI_Win_fence POPMODEL_ANY,
    MPI_Win_lock POPMODEL_ANY, MPI_Win_unlock POPMODEL_ANY, MPI_Win_lock_all POPMODEL_ANY,
    MPI_Win_unlock_all POPMODEL_ANY, MPI_Win_flush POPMODEL_ANY, MPI_Win_flush_all POPMODEL_ANY,
    MPI_Win_flush_local POPMODEL_ANY, MPI_Win_flush_local_all POPMODEL_ANY, MPI_Win_sync POPMODEL_ANY,
    MPI_Win_start POPMODEL_ANY, MPI_Win_complete POPMODEL_ANY, MPI_Win_post POPMODEL_ANY,
    MPI_Win_wait POPMODEL_ANY, MPI_Win_test POPMODEL_ANY, MPI_Win_get_attr POPMODEL_ANY,
    MPI_Win_set_name POPMODEL_ANY, MPI_Put POPMODEL_ANY, MPI_Get POPMODEL_ANY, MPI_Accumulate POPMODEL_ANY,
    MPI_Get_accumulate POPMODEL_ANY, MPI_Fetch_and_op POPMODEL_ANY, MPI_Compare_and_swap POPMODEL_ANY,
    MPI_Rput POPMODEL_ANY, MPI_Rget POPMODEL_ANY, MPI_Raccumulate POPMODEL_ANY, MPI_Alloc_mem POPMODEL_ANY,
    MPI_Free_mem POPMODEL_ANY, MPI_File_open POPMODEL_ANY, MPI_File_close POPMODEL_ANY,
    MPI_File_delete POPMODEL_ANY, MPI_File_set_view POPMODEL_ANY, MPI_File_get_view POPMODEL_ANY,
    MPI_File_set_size POPMODEL_ANY, MPI_File_get_size POPMODEL_ANY, MPI_File_preallocate POPMODEL_ANY,
    MPI_File_seek POPMODEL_ANY, MPI_File_get_position POPMODEL_ANY, MPI_File_read POPMODEL_ANY,
    MPI_File_write POPMODEL_ANY, MPI_File_read_at POPMODEL_ANY, MPI_File_write_at POPMODEL_ANY,
    MPI_File_read_all POPMODEL_ANY, MPI_File_write_all POPMODEL_ANY, MPI_File_read_at_all POPMODEL_ANY,
    MPI_File_write_at_all POPMODEL_ANY, MPI_File_iread POPMODEL_ANY, MPI_File_iwrite POPMODEL_ANY,
    MPI_File_iread_at POPMODEL_ANY, MPI_File_iwrite_at POPMODEL_ANY, MPI_File_read_shared POPMODEL_ANY,
    MPI_File_write_shared POPMODEL_ANY, MPI_File_read_ordered POPMODEL_ANY,
    MPI_File_write_ordered POPMODEL_ANY, MPI_File_sync POPMODEL_ANY, MPI_File_set_info POPMODEL_ANY,
    MPI_File_set_atomicity POPMODEL_ANY, MPI_Register_datarep POPMODEL_ANY, MPI_Info_create POPMODEL_ANY,
    MPI_Info_set POPMODEL_ANY, MPI_Info_get POPMODEL_ANY, MPI_Info_get_nkeys POPMODEL_ANY,
    MPI_Info_free POPMODEL_ANY, MPI_Info_dup POPMODEL_ANY, MPI_Info_delete POPMODEL_ANY,
    MPI_Attr_get POPMODEL_ANY, MPI_Attr_put POPMODEL_ANY, MPI_Keyval_create POPMODEL_ANY,
    MPI_Keyval_free POPMODEL_ANY, MPI_Query_thread POPMODEL_ANY, MPI_Is_thread_main POPMODEL_ANY,
    MPI_Get_version POPMODEL_ANY, MPI_Get_library_version POPMODEL_ANY, MPI_Pcontrol POPMODEL_ANY,
    MPI_Add_error_class POPMODEL_ANY, MPI_Add_error_code POPMODEL_ANY, MPI_Open_port POPMODEL_ANY,
    MPI_Close_port POPMODEL_ANY, MPI_Publish_name POPMODEL_ANY, MPI_Lookup_name POPMODEL_ANY,
    MPI_Type_f2c POPMODEL_ANY, MPI_Comm_c2f POPMODEL_ANY, MPI_Comm_f2c POPMODEL_ANY, MPI_Type_c2f POPMODEL_ANY,
    MPI_Op_f2c POPMODEL_ANY, MPI_Op_commutative POPMODEL_ANY, MPI_Grequest_start POPMODEL_ANY,
    MPI_Grequest_complete POPMODEL_ANY, MPI_Session_init POPMODEL_ANY, MPI_Session_finalize POPMODEL_ANY,
    MPI_T_init_thread POPMODEL_ANY, MPI_T_finalize POPMODEL_ANY;
#ifdef __cplusplus
}
#endif
#endif

	.text
	.file	"triad.c"
triad:                                  // @triad
.Lfunc_begin0:
	.file	0 "." "triad.c" md5 0x6bfeaa5bfa50df2e919a3622dbb5748b
	.loc	0 2 0                           // triad.c:2:0
// %bb.0:
	.loc	0 3 5 prologue_end              // triad.c:3:5
	cmp	x3, #1
                                        // kill: def $d0 killed $d0 def $q0
	b.lt	.LBB0_8
// %bb.1:
	cmp	x3, #4
	b.hs	.LBB0_3
// %bb.2:
	.loc	0 0 5 is_stmt 0                 // triad.c:0:5
	mov	x8, xzr
	b	.LBB0_6
.LBB0_3:
	.loc	0 3 5                           // triad.c:3:5
	and	x8, x3, #0xfffffffffffffffc
	add	x9, x1, #16
	add	x10, x2, #16
	add	x11, x0, #16
	mov	x12, x8
	dup	v1.2d, v0.d[0]
.LBB0_4:                                // =>This Inner Loop Header: Depth=1
	.loc	0 4 16 is_stmt 1                // triad.c:4:16
	ldp	q2, q3, [x9, #-16]
	.loc	0 3 30                          // triad.c:3:30
	add	x9, x9, #32
	subs	x12, x12, #4
	.loc	0 4 27                          // triad.c:4:27
	ldp	q4, q5, [x10, #-16]
	.loc	0 3 30                          // triad.c:3:30
	add	x10, x10, #32
	.loc	0 4 21                          // triad.c:4:21
	fmla	v2.2d, v4.2d, v1.2d
	fmla	v3.2d, v5.2d, v1.2d
	.loc	0 4 14 is_stmt 0                // triad.c:4:14
	stp	q2, q3, [x11, #-16]
	.loc	0 3 30 is_stmt 1                // triad.c:3:30
	add	x11, x11, #32
	b.ne	.LBB0_4
// %bb.5:
	.loc	0 3 5 is_stmt 0                 // triad.c:3:5
	cmp	x8, x3
	b.eq	.LBB0_8
.LBB0_6:
	lsl	x11, x8, #3
	sub	x8, x3, x8
	add	x9, x0, x11
	add	x10, x2, x11
	add	x11, x1, x11
.LBB0_7:                                // =>This Inner Loop Header: Depth=1
	.loc	0 4 16 is_stmt 1                // triad.c:4:16
	ldr	d1, [x11], #8
	.loc	0 4 27 is_stmt 0                // triad.c:4:27
	ldr	d2, [x10], #8
	.loc	0 3 24 is_stmt 1                // triad.c:3:24
	subs	x8, x8, #1
	.loc	0 4 21                          // triad.c:4:21
	fmadd	d1, d0, d2, d1
	.loc	0 4 14 is_stmt 0                // triad.c:4:14
	str	d1, [x9], #8
	.loc	0 3 5 is_stmt 1                 // triad.c:3:5
	b.ne	.LBB0_7
.LBB0_8:
	.loc	0 5 1                           // triad.c:5:1
	ret
.Ltmp0:
.Lfunc_end0:
                                        // -- End function
copy:                                   // @copy
.Lfunc_begin1:
	.loc	0 7 0                           // triad.c:7:0
// %bb.0:
	.loc	0 8 5 prologue_end              // triad.c:8:5
	cmp	x2, #1
	b.lt	.LBB1_8
// %bb.1:
	cmp	x2, #8
	b.hs	.LBB1_3
// %bb.2:
	.loc	0 0 5 is_stmt 0                 // triad.c:0:5
	mov	x8, xzr
	b	.LBB1_6
.LBB1_3:
	.loc	0 8 5                           // triad.c:8:5
	and	x8, x2, #0xfffffffffffffff8
	add	x9, x1, #16
	add	x10, x0, #16
	mov	x11, x8
.LBB1_4:                                // =>This Inner Loop Header: Depth=1
	.loc	0 9 16 is_stmt 1                // triad.c:9:16
	ldp	q0, q1, [x9, #-16]
	.loc	0 8 30                          // triad.c:8:30
	add	x9, x9, #32
	subs	x11, x11, #8
	.loc	0 9 14                          // triad.c:9:14
	stp	q0, q1, [x10, #-16]
	.loc	0 8 30                          // triad.c:8:30
	add	x10, x10, #32
	b.ne	.LBB1_4
// %bb.5:
	.loc	0 8 5 is_stmt 0                 // triad.c:8:5
	cmp	x8, x2
	b.eq	.LBB1_8
.LBB1_6:
	lsl	x10, x8, #2
	sub	x9, x2, x8
	add	x8, x0, x10
	add	x10, x1, x10
.LBB1_7:                                // =>This Inner Loop Header: Depth=1
	.loc	0 9 16 is_stmt 1                // triad.c:9:16
	ldr	s0, [x10], #4
	.loc	0 8 24                          // triad.c:8:24
	subs	x9, x9, #1
	.loc	0 9 14                          // triad.c:9:14
	str	s0, [x8], #4
	.loc	0 8 5                           // triad.c:8:5
	b.ne	.LBB1_7
.LBB1_8:
	.loc	0 10 1                          // triad.c:10:1
	ret
.Ltmp1:
.Lfunc_end1:
                                        // -- End function
.Laddr_table_base0:
.Lline_table_start0:

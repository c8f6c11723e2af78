	.text
	.file	"triad.c"
triad:                                  # @triad
.Lfunc_begin0:
	.file	0 "." "triad.c" md5 0x6bfeaa5bfa50df2e919a3622dbb5748b
	.loc	0 2 0                           # triad.c:2:0
# %bb.0:
	.loc	0 3 24 prologue_end             # triad.c:3:24
	testq	%rcx, %rcx
	.loc	0 3 5 is_stmt 0                 # triad.c:3:5
	jle	.LBB0_11
# %bb.1:
	cmpq	$4, %rcx
	jae	.LBB0_3
# %bb.2:
	.loc	0 0 5                           # triad.c:0:5
	xorl	%r8d, %r8d
	jmp	.LBB0_10
.LBB0_3:
	.loc	0 3 5                           # triad.c:3:5
	movq	%rcx, %r8
	andq	$-4, %r8
	movapd	%xmm0, %xmm1
	unpcklpd	%xmm0, %xmm1                    # xmm1 = xmm1[0],xmm0[0]
	leaq	-4(%r8), %rax
	movq	%rax, %r9
	shrq	$2, %r9
	addq	$1, %r9
	testq	%rax, %rax
	je	.LBB0_4
# %bb.5:
	movq	%r9, %r10
	andq	$-2, %r10
	xorl	%eax, %eax
.LBB0_6:                                # =>This Inner Loop Header: Depth=1
	.loc	0 4 16 is_stmt 1                # triad.c:4:16
	movupd	(%rsi,%rax,8), %xmm2
	movupd	16(%rsi,%rax,8), %xmm3
	.loc	0 4 27 is_stmt 0                # triad.c:4:27
	movupd	(%rdx,%rax,8), %xmm4
	movupd	16(%rdx,%rax,8), %xmm5
	.loc	0 4 21                          # triad.c:4:21
	mulpd	%xmm1, %xmm4
	addpd	%xmm2, %xmm4
	mulpd	%xmm1, %xmm5
	addpd	%xmm3, %xmm5
	.loc	0 4 14                          # triad.c:4:14
	movupd	%xmm4, (%rdi,%rax,8)
	movupd	%xmm5, 16(%rdi,%rax,8)
	.loc	0 4 16                          # triad.c:4:16
	movupd	32(%rsi,%rax,8), %xmm2
	movupd	48(%rsi,%rax,8), %xmm3
	.loc	0 4 27                          # triad.c:4:27
	movupd	32(%rdx,%rax,8), %xmm4
	movupd	48(%rdx,%rax,8), %xmm5
	.loc	0 4 21                          # triad.c:4:21
	mulpd	%xmm1, %xmm4
	addpd	%xmm2, %xmm4
	mulpd	%xmm1, %xmm5
	addpd	%xmm3, %xmm5
	.loc	0 4 14                          # triad.c:4:14
	movupd	%xmm4, 32(%rdi,%rax,8)
	movupd	%xmm5, 48(%rdi,%rax,8)
	.loc	0 3 30 is_stmt 1                # triad.c:3:30
	addq	$8, %rax
	addq	$-2, %r10
	jne	.LBB0_6
# %bb.7:
	testb	$1, %r9b
	je	.LBB0_9
.LBB0_8:
	.loc	0 4 16                          # triad.c:4:16
	movupd	(%rsi,%rax,8), %xmm2
	movupd	16(%rsi,%rax,8), %xmm3
	.loc	0 4 27 is_stmt 0                # triad.c:4:27
	movupd	(%rdx,%rax,8), %xmm4
	movupd	16(%rdx,%rax,8), %xmm5
	.loc	0 4 21                          # triad.c:4:21
	mulpd	%xmm1, %xmm4
	addpd	%xmm2, %xmm4
	mulpd	%xmm1, %xmm5
	addpd	%xmm3, %xmm5
	.loc	0 4 14                          # triad.c:4:14
	movupd	%xmm4, (%rdi,%rax,8)
	movupd	%xmm5, 16(%rdi,%rax,8)
.LBB0_9:
	.loc	0 3 5 is_stmt 1                 # triad.c:3:5
	cmpq	%rcx, %r8
	je	.LBB0_11
.LBB0_10:                               # =>This Inner Loop Header: Depth=1
	.loc	0 0 5 is_stmt 0                 # triad.c:0:5
	movsd	(%rdx,%r8,8), %xmm1             # xmm1 = mem[0],zero
	.loc	0 4 21 is_stmt 1                # triad.c:4:21
	mulsd	%xmm0, %xmm1
	addsd	(%rsi,%r8,8), %xmm1
	.loc	0 4 14 is_stmt 0                # triad.c:4:14
	movsd	%xmm1, (%rdi,%r8,8)
	.loc	0 3 30 is_stmt 1                # triad.c:3:30
	addq	$1, %r8
	.loc	0 3 24 is_stmt 0                # triad.c:3:24
	cmpq	%r8, %rcx
	.loc	0 3 5                           # triad.c:3:5
	jne	.LBB0_10
.LBB0_11:
	.loc	0 5 1 is_stmt 1                 # triad.c:5:1
	retq
.LBB0_4:
	.loc	0 0 1 is_stmt 0                 # triad.c:0:1
	xorl	%eax, %eax
	.loc	0 3 30 is_stmt 1                # triad.c:3:30
	testb	$1, %r9b
	jne	.LBB0_8
	jmp	.LBB0_9
.Ltmp0:
.Lfunc_end0:
                                        # -- End function
copy:                                   # @copy
.Lfunc_begin1:
	.loc	0 7 0                           # triad.c:7:0
# %bb.0:
	.loc	0 8 24 prologue_end             # triad.c:8:24
	testq	%rdx, %rdx
	.loc	0 8 5 is_stmt 0                 # triad.c:8:5
	jle	.LBB1_12
# %bb.1:
	cmpq	$8, %rdx
	jae	.LBB1_3
# %bb.2:
	.loc	0 0 5                           # triad.c:0:5
	xorl	%eax, %eax
	jmp	.LBB1_11
.LBB1_3:
	.loc	0 8 5                           # triad.c:8:5
	movq	%rdx, %rax
	andq	$-8, %rax
	leaq	-8(%rax), %rcx
	movq	%rcx, %r9
	shrq	$3, %r9
	addq	$1, %r9
	movl	%r9d, %r8d
	andl	$3, %r8d
	cmpq	$24, %rcx
	jae	.LBB1_5
# %bb.4:
	.loc	0 0 5                           # triad.c:0:5
	xorl	%ecx, %ecx
	jmp	.LBB1_7
.LBB1_5:
	.loc	0 8 5                           # triad.c:8:5
	andq	$-4, %r9
	xorl	%ecx, %ecx
.LBB1_6:                                # =>This Inner Loop Header: Depth=1
	.loc	0 9 16 is_stmt 1                # triad.c:9:16
	movups	(%rsi,%rcx,4), %xmm0
	movups	16(%rsi,%rcx,4), %xmm1
	.loc	0 9 14 is_stmt 0                # triad.c:9:14
	movups	%xmm0, (%rdi,%rcx,4)
	movups	%xmm1, 16(%rdi,%rcx,4)
	.loc	0 9 16                          # triad.c:9:16
	movups	32(%rsi,%rcx,4), %xmm0
	movups	48(%rsi,%rcx,4), %xmm1
	.loc	0 9 14                          # triad.c:9:14
	movups	%xmm0, 32(%rdi,%rcx,4)
	movups	%xmm1, 48(%rdi,%rcx,4)
	.loc	0 9 16                          # triad.c:9:16
	movups	64(%rsi,%rcx,4), %xmm0
	movups	80(%rsi,%rcx,4), %xmm1
	.loc	0 9 14                          # triad.c:9:14
	movups	%xmm0, 64(%rdi,%rcx,4)
	movups	%xmm1, 80(%rdi,%rcx,4)
	.loc	0 9 16                          # triad.c:9:16
	movups	96(%rsi,%rcx,4), %xmm0
	movups	112(%rsi,%rcx,4), %xmm1
	.loc	0 9 14                          # triad.c:9:14
	movups	%xmm0, 96(%rdi,%rcx,4)
	movups	%xmm1, 112(%rdi,%rcx,4)
	.loc	0 8 30 is_stmt 1                # triad.c:8:30
	addq	$32, %rcx
	addq	$-4, %r9
	jne	.LBB1_6
.LBB1_7:
	testq	%r8, %r8
	je	.LBB1_10
# %bb.8:
	leaq	(%rdi,%rcx,4), %r9
	addq	$16, %r9
	leaq	(%rsi,%rcx,4), %r10
	addq	$16, %r10
	shlq	$5, %r8
	xorl	%ecx, %ecx
.LBB1_9:                                # =>This Inner Loop Header: Depth=1
	.loc	0 9 16                          # triad.c:9:16
	movups	-16(%r10,%rcx), %xmm0
	movups	(%r10,%rcx), %xmm1
	.loc	0 9 14 is_stmt 0                # triad.c:9:14
	movups	%xmm0, -16(%r9,%rcx)
	movups	%xmm1, (%r9,%rcx)
	.loc	0 8 30 is_stmt 1                # triad.c:8:30
	addq	$32, %rcx
	cmpq	%rcx, %r8
	jne	.LBB1_9
.LBB1_10:
	.loc	0 8 5 is_stmt 0                 # triad.c:8:5
	cmpq	%rdx, %rax
	je	.LBB1_12
.LBB1_11:                               # =>This Inner Loop Header: Depth=1
	.loc	0 9 16 is_stmt 1                # triad.c:9:16
	movss	(%rsi,%rax,4), %xmm0            # xmm0 = mem[0],zero,zero,zero
	.loc	0 9 14 is_stmt 0                # triad.c:9:14
	movss	%xmm0, (%rdi,%rax,4)
	.loc	0 8 30 is_stmt 1                # triad.c:8:30
	addq	$1, %rax
	.loc	0 8 24 is_stmt 0                # triad.c:8:24
	cmpq	%rax, %rdx
	.loc	0 8 5                           # triad.c:8:5
	jne	.LBB1_11
.LBB1_12:
	.loc	0 10 1 is_stmt 1                # triad.c:10:1
	retq
.Ltmp1:
.Lfunc_end1:
                                        # -- End function
.Laddr_table_base0:
.Lline_table_start0:

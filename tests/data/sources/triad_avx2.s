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
	cmpq	$16, %rcx
	jae	.LBB0_3
# %bb.2:
	.loc	0 0 5                           # triad.c:0:5
	xorl	%r8d, %r8d
	jmp	.LBB0_10
.LBB0_3:
	.loc	0 3 5                           # triad.c:3:5
	movq	%rcx, %r8
	andq	$-16, %r8
	vbroadcastsd	%xmm0, %ymm1
	leaq	-16(%r8), %rax
	movq	%rax, %r9
	shrq	$4, %r9
	incq	%r9
	testq	%rax, %rax
	je	.LBB0_4
# %bb.5:
	movq	%r9, %r10
	andq	$-2, %r10
	xorl	%eax, %eax
.LBB0_6:                                # =>This Inner Loop Header: Depth=1
	.loc	0 4 27 is_stmt 1                # triad.c:4:27
	vmovupd	(%rdx,%rax,8), %ymm2
	vmovupd	32(%rdx,%rax,8), %ymm3
	vmovupd	64(%rdx,%rax,8), %ymm4
	vmovupd	96(%rdx,%rax,8), %ymm5
	.loc	0 4 21 is_stmt 0                # triad.c:4:21
	vfmadd213pd	(%rsi,%rax,8), %ymm1, %ymm2 # ymm2 = (ymm1 * ymm2) + mem
	vfmadd213pd	32(%rsi,%rax,8), %ymm1, %ymm3 # ymm3 = (ymm1 * ymm3) + mem
	vfmadd213pd	64(%rsi,%rax,8), %ymm1, %ymm4 # ymm4 = (ymm1 * ymm4) + mem
	vfmadd213pd	96(%rsi,%rax,8), %ymm1, %ymm5 # ymm5 = (ymm1 * ymm5) + mem
	.loc	0 4 14                          # triad.c:4:14
	vmovupd	%ymm2, (%rdi,%rax,8)
	vmovupd	%ymm3, 32(%rdi,%rax,8)
	vmovupd	%ymm4, 64(%rdi,%rax,8)
	vmovupd	%ymm5, 96(%rdi,%rax,8)
	.loc	0 4 27                          # triad.c:4:27
	vmovupd	128(%rdx,%rax,8), %ymm2
	vmovupd	160(%rdx,%rax,8), %ymm3
	vmovupd	192(%rdx,%rax,8), %ymm4
	vmovupd	224(%rdx,%rax,8), %ymm5
	.loc	0 4 21                          # triad.c:4:21
	vfmadd213pd	128(%rsi,%rax,8), %ymm1, %ymm2 # ymm2 = (ymm1 * ymm2) + mem
	vfmadd213pd	160(%rsi,%rax,8), %ymm1, %ymm3 # ymm3 = (ymm1 * ymm3) + mem
	vfmadd213pd	192(%rsi,%rax,8), %ymm1, %ymm4 # ymm4 = (ymm1 * ymm4) + mem
	vfmadd213pd	224(%rsi,%rax,8), %ymm1, %ymm5 # ymm5 = (ymm1 * ymm5) + mem
	.loc	0 4 14                          # triad.c:4:14
	vmovupd	%ymm2, 128(%rdi,%rax,8)
	vmovupd	%ymm3, 160(%rdi,%rax,8)
	vmovupd	%ymm4, 192(%rdi,%rax,8)
	vmovupd	%ymm5, 224(%rdi,%rax,8)
	.loc	0 3 30 is_stmt 1                # triad.c:3:30
	addq	$32, %rax
	addq	$-2, %r10
	jne	.LBB0_6
# %bb.7:
	testb	$1, %r9b
	je	.LBB0_9
.LBB0_8:
	.loc	0 4 27                          # triad.c:4:27
	vmovupd	(%rdx,%rax,8), %ymm2
	vmovupd	32(%rdx,%rax,8), %ymm3
	vmovupd	64(%rdx,%rax,8), %ymm4
	vmovupd	96(%rdx,%rax,8), %ymm5
	.loc	0 4 21 is_stmt 0                # triad.c:4:21
	vfmadd213pd	(%rsi,%rax,8), %ymm1, %ymm2 # ymm2 = (ymm1 * ymm2) + mem
	vfmadd213pd	32(%rsi,%rax,8), %ymm1, %ymm3 # ymm3 = (ymm1 * ymm3) + mem
	vfmadd213pd	64(%rsi,%rax,8), %ymm1, %ymm4 # ymm4 = (ymm1 * ymm4) + mem
	vfmadd213pd	96(%rsi,%rax,8), %ymm1, %ymm5 # ymm5 = (ymm1 * ymm5) + mem
	.loc	0 4 14                          # triad.c:4:14
	vmovupd	%ymm2, (%rdi,%rax,8)
	vmovupd	%ymm3, 32(%rdi,%rax,8)
	vmovupd	%ymm4, 64(%rdi,%rax,8)
	vmovupd	%ymm5, 96(%rdi,%rax,8)
.LBB0_9:
	.loc	0 3 5 is_stmt 1                 # triad.c:3:5
	cmpq	%rcx, %r8
	je	.LBB0_11
.LBB0_10:                               # =>This Inner Loop Header: Depth=1
	.loc	0 4 27                          # triad.c:4:27
	vmovsd	(%rdx,%r8,8), %xmm1             # xmm1 = mem[0],zero
	.loc	0 4 21 is_stmt 0                # triad.c:4:21
	vfmadd213sd	(%rsi,%r8,8), %xmm0, %xmm1 # xmm1 = (xmm0 * xmm1) + mem
	.loc	0 4 14                          # triad.c:4:14
	vmovsd	%xmm1, (%rdi,%r8,8)
	.loc	0 3 30 is_stmt 1                # triad.c:3:30
	incq	%r8
	.loc	0 3 24 is_stmt 0                # triad.c:3:24
	cmpq	%r8, %rcx
	.loc	0 3 5                           # triad.c:3:5
	jne	.LBB0_10
.LBB0_11:
	.loc	0 5 1 is_stmt 1                 # triad.c:5:1
	vzeroupper
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
	cmpq	$32, %rdx
	jae	.LBB1_3
# %bb.2:
	.loc	0 0 5                           # triad.c:0:5
	xorl	%eax, %eax
	jmp	.LBB1_11
.LBB1_3:
	.loc	0 8 5                           # triad.c:8:5
	movq	%rdx, %rax
	andq	$-32, %rax
	leaq	-32(%rax), %rcx
	movq	%rcx, %r9
	shrq	$5, %r9
	incq	%r9
	movl	%r9d, %r8d
	andl	$3, %r8d
	cmpq	$96, %rcx
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
	vmovups	(%rsi,%rcx,4), %ymm0
	vmovups	32(%rsi,%rcx,4), %ymm1
	vmovups	64(%rsi,%rcx,4), %ymm2
	vmovups	96(%rsi,%rcx,4), %ymm3
	.loc	0 9 14 is_stmt 0                # triad.c:9:14
	vmovups	%ymm0, (%rdi,%rcx,4)
	vmovups	%ymm1, 32(%rdi,%rcx,4)
	vmovups	%ymm2, 64(%rdi,%rcx,4)
	vmovups	%ymm3, 96(%rdi,%rcx,4)
	.loc	0 9 16                          # triad.c:9:16
	vmovups	128(%rsi,%rcx,4), %ymm0
	vmovups	160(%rsi,%rcx,4), %ymm1
	vmovups	192(%rsi,%rcx,4), %ymm2
	vmovups	224(%rsi,%rcx,4), %ymm3
	.loc	0 9 14                          # triad.c:9:14
	vmovups	%ymm0, 128(%rdi,%rcx,4)
	vmovups	%ymm1, 160(%rdi,%rcx,4)
	vmovups	%ymm2, 192(%rdi,%rcx,4)
	vmovups	%ymm3, 224(%rdi,%rcx,4)
	.loc	0 9 16                          # triad.c:9:16
	vmovups	256(%rsi,%rcx,4), %ymm0
	vmovups	288(%rsi,%rcx,4), %ymm1
	vmovups	320(%rsi,%rcx,4), %ymm2
	vmovups	352(%rsi,%rcx,4), %ymm3
	.loc	0 9 14                          # triad.c:9:14
	vmovups	%ymm0, 256(%rdi,%rcx,4)
	vmovups	%ymm1, 288(%rdi,%rcx,4)
	vmovups	%ymm2, 320(%rdi,%rcx,4)
	vmovups	%ymm3, 352(%rdi,%rcx,4)
	.loc	0 9 16                          # triad.c:9:16
	vmovups	384(%rsi,%rcx,4), %ymm0
	vmovups	416(%rsi,%rcx,4), %ymm1
	vmovups	448(%rsi,%rcx,4), %ymm2
	vmovups	480(%rsi,%rcx,4), %ymm3
	.loc	0 9 14                          # triad.c:9:14
	vmovups	%ymm0, 384(%rdi,%rcx,4)
	vmovups	%ymm1, 416(%rdi,%rcx,4)
	vmovups	%ymm2, 448(%rdi,%rcx,4)
	vmovups	%ymm3, 480(%rdi,%rcx,4)
	.loc	0 8 30 is_stmt 1                # triad.c:8:30
	subq	$-128, %rcx
	addq	$-4, %r9
	jne	.LBB1_6
.LBB1_7:
	testq	%r8, %r8
	je	.LBB1_10
# %bb.8:
	leaq	(%rdi,%rcx,4), %r9
	addq	$96, %r9
	leaq	(%rsi,%rcx,4), %r10
	addq	$96, %r10
	shlq	$7, %r8
	xorl	%ecx, %ecx
.LBB1_9:                                # =>This Inner Loop Header: Depth=1
	.loc	0 9 16                          # triad.c:9:16
	vmovups	-96(%r10,%rcx), %ymm0
	vmovups	-64(%r10,%rcx), %ymm1
	vmovups	-32(%r10,%rcx), %ymm2
	vmovups	(%r10,%rcx), %ymm3
	.loc	0 9 14 is_stmt 0                # triad.c:9:14
	vmovups	%ymm0, -96(%r9,%rcx)
	vmovups	%ymm1, -64(%r9,%rcx)
	vmovups	%ymm2, -32(%r9,%rcx)
	vmovups	%ymm3, (%r9,%rcx)
	.loc	0 8 30 is_stmt 1                # triad.c:8:30
	subq	$-128, %rcx
	cmpq	%rcx, %r8
	jne	.LBB1_9
.LBB1_10:
	.loc	0 8 5 is_stmt 0                 # triad.c:8:5
	cmpq	%rdx, %rax
	je	.LBB1_12
.LBB1_11:                               # =>This Inner Loop Header: Depth=1
	.loc	0 9 16 is_stmt 1                # triad.c:9:16
	vmovss	(%rsi,%rax,4), %xmm0            # xmm0 = mem[0],zero,zero,zero
	.loc	0 9 14 is_stmt 0                # triad.c:9:14
	vmovss	%xmm0, (%rdi,%rax,4)
	.loc	0 8 30 is_stmt 1                # triad.c:8:30
	incq	%rax
	.loc	0 8 24 is_stmt 0                # triad.c:8:24
	cmpq	%rax, %rdx
	.loc	0 8 5                           # triad.c:8:5
	jne	.LBB1_11
.LBB1_12:
	.loc	0 10 1 is_stmt 1                # triad.c:10:1
	vzeroupper
	retq
.Ltmp1:
.Lfunc_end1:
                                        # -- End function
.Laddr_table_base0:
.Lline_table_start0:

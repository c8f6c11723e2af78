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
	cmpq	$32, %rcx
	jae	.LBB0_3
# %bb.2:
	.loc	0 0 5                           # triad.c:0:5
	xorl	%r8d, %r8d
	jmp	.LBB0_10
.LBB0_3:
	.loc	0 3 5                           # triad.c:3:5
	movq	%rcx, %r8
	andq	$-32, %r8
	vbroadcastsd	%xmm0, %zmm1
	leaq	-32(%r8), %rax
	movq	%rax, %r9
	shrq	$5, %r9
	incq	%r9
	testq	%rax, %rax
	je	.LBB0_4
# %bb.5:
	movq	%r9, %r10
	andq	$-2, %r10
	xorl	%eax, %eax
.LBB0_6:                                # =>This Inner Loop Header: Depth=1
	.loc	0 4 27 is_stmt 1                # triad.c:4:27
	vmovupd	(%rdx,%rax,8), %zmm2
	vmovupd	64(%rdx,%rax,8), %zmm3
	vmovupd	128(%rdx,%rax,8), %zmm4
	vmovupd	192(%rdx,%rax,8), %zmm5
	.loc	0 4 21 is_stmt 0                # triad.c:4:21
	vfmadd213pd	(%rsi,%rax,8), %zmm1, %zmm2 # zmm2 = (zmm1 * zmm2) + mem
	vfmadd213pd	64(%rsi,%rax,8), %zmm1, %zmm3 # zmm3 = (zmm1 * zmm3) + mem
	vfmadd213pd	128(%rsi,%rax,8), %zmm1, %zmm4 # zmm4 = (zmm1 * zmm4) + mem
	vfmadd213pd	192(%rsi,%rax,8), %zmm1, %zmm5 # zmm5 = (zmm1 * zmm5) + mem
	.loc	0 4 14                          # triad.c:4:14
	vmovupd	%zmm2, (%rdi,%rax,8)
	vmovupd	%zmm3, 64(%rdi,%rax,8)
	vmovupd	%zmm4, 128(%rdi,%rax,8)
	vmovupd	%zmm5, 192(%rdi,%rax,8)
	.loc	0 4 27                          # triad.c:4:27
	vmovupd	256(%rdx,%rax,8), %zmm2
	vmovupd	320(%rdx,%rax,8), %zmm3
	vmovupd	384(%rdx,%rax,8), %zmm4
	vmovupd	448(%rdx,%rax,8), %zmm5
	.loc	0 4 21                          # triad.c:4:21
	vfmadd213pd	256(%rsi,%rax,8), %zmm1, %zmm2 # zmm2 = (zmm1 * zmm2) + mem
	vfmadd213pd	320(%rsi,%rax,8), %zmm1, %zmm3 # zmm3 = (zmm1 * zmm3) + mem
	vfmadd213pd	384(%rsi,%rax,8), %zmm1, %zmm4 # zmm4 = (zmm1 * zmm4) + mem
	vfmadd213pd	448(%rsi,%rax,8), %zmm1, %zmm5 # zmm5 = (zmm1 * zmm5) + mem
	.loc	0 4 14                          # triad.c:4:14
	vmovupd	%zmm2, 256(%rdi,%rax,8)
	vmovupd	%zmm3, 320(%rdi,%rax,8)
	vmovupd	%zmm4, 384(%rdi,%rax,8)
	vmovupd	%zmm5, 448(%rdi,%rax,8)
	.loc	0 3 30 is_stmt 1                # triad.c:3:30
	addq	$64, %rax
	addq	$-2, %r10
	jne	.LBB0_6
# %bb.7:
	testb	$1, %r9b
	je	.LBB0_9
.LBB0_8:
	.loc	0 4 27                          # triad.c:4:27
	vmovupd	(%rdx,%rax,8), %zmm2
	vmovupd	64(%rdx,%rax,8), %zmm3
	vmovupd	128(%rdx,%rax,8), %zmm4
	vmovupd	192(%rdx,%rax,8), %zmm5
	.loc	0 4 21 is_stmt 0                # triad.c:4:21
	vfmadd213pd	(%rsi,%rax,8), %zmm1, %zmm2 # zmm2 = (zmm1 * zmm2) + mem
	vfmadd213pd	64(%rsi,%rax,8), %zmm1, %zmm3 # zmm3 = (zmm1 * zmm3) + mem
	vfmadd213pd	128(%rsi,%rax,8), %zmm1, %zmm4 # zmm4 = (zmm1 * zmm4) + mem
	vfmadd213pd	192(%rsi,%rax,8), %zmm1, %zmm5 # zmm5 = (zmm1 * zmm5) + mem
	.loc	0 4 14                          # triad.c:4:14
	vmovupd	%zmm2, (%rdi,%rax,8)
	vmovupd	%zmm3, 64(%rdi,%rax,8)
	vmovupd	%zmm4, 128(%rdi,%rax,8)
	vmovupd	%zmm5, 192(%rdi,%rax,8)
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
	jle	.LBB1_18
# %bb.1:
	cmpq	$8, %rdx
	jae	.LBB1_3
# %bb.2:
	.loc	0 0 5                           # triad.c:0:5
	xorl	%eax, %eax
	jmp	.LBB1_17
.LBB1_3:
	.loc	0 8 5                           # triad.c:8:5
	cmpq	$64, %rdx
	jae	.LBB1_5
# %bb.4:
	.loc	0 0 5                           # triad.c:0:5
	xorl	%eax, %eax
	jmp	.LBB1_14
.LBB1_5:
	.loc	0 8 5                           # triad.c:8:5
	movq	%rdx, %rax
	andq	$-64, %rax
	leaq	-64(%rax), %rcx
	movq	%rcx, %r9
	shrq	$6, %r9
	incq	%r9
	movl	%r9d, %r8d
	andl	$3, %r8d
	cmpq	$192, %rcx
	jae	.LBB1_7
# %bb.6:
	.loc	0 0 5                           # triad.c:0:5
	xorl	%ecx, %ecx
	jmp	.LBB1_9
.LBB1_7:
	.loc	0 8 5                           # triad.c:8:5
	andq	$-4, %r9
	xorl	%ecx, %ecx
.LBB1_8:                                # =>This Inner Loop Header: Depth=1
	.loc	0 9 16 is_stmt 1                # triad.c:9:16
	vmovups	(%rsi,%rcx,4), %zmm0
	vmovups	64(%rsi,%rcx,4), %zmm1
	vmovups	128(%rsi,%rcx,4), %zmm2
	vmovups	192(%rsi,%rcx,4), %zmm3
	.loc	0 9 14 is_stmt 0                # triad.c:9:14
	vmovups	%zmm0, (%rdi,%rcx,4)
	vmovups	%zmm1, 64(%rdi,%rcx,4)
	vmovups	%zmm2, 128(%rdi,%rcx,4)
	vmovups	%zmm3, 192(%rdi,%rcx,4)
	.loc	0 9 16                          # triad.c:9:16
	vmovups	256(%rsi,%rcx,4), %zmm0
	vmovups	320(%rsi,%rcx,4), %zmm1
	vmovups	384(%rsi,%rcx,4), %zmm2
	vmovups	448(%rsi,%rcx,4), %zmm3
	.loc	0 9 14                          # triad.c:9:14
	vmovups	%zmm0, 256(%rdi,%rcx,4)
	vmovups	%zmm1, 320(%rdi,%rcx,4)
	vmovups	%zmm2, 384(%rdi,%rcx,4)
	vmovups	%zmm3, 448(%rdi,%rcx,4)
	.loc	0 9 16                          # triad.c:9:16
	vmovups	512(%rsi,%rcx,4), %zmm0
	vmovups	576(%rsi,%rcx,4), %zmm1
	vmovups	640(%rsi,%rcx,4), %zmm2
	vmovups	704(%rsi,%rcx,4), %zmm3
	.loc	0 9 14                          # triad.c:9:14
	vmovups	%zmm0, 512(%rdi,%rcx,4)
	vmovups	%zmm1, 576(%rdi,%rcx,4)
	vmovups	%zmm2, 640(%rdi,%rcx,4)
	vmovups	%zmm3, 704(%rdi,%rcx,4)
	.loc	0 9 16                          # triad.c:9:16
	vmovups	768(%rsi,%rcx,4), %zmm0
	vmovups	832(%rsi,%rcx,4), %zmm1
	vmovups	896(%rsi,%rcx,4), %zmm2
	vmovups	960(%rsi,%rcx,4), %zmm3
	.loc	0 9 14                          # triad.c:9:14
	vmovups	%zmm0, 768(%rdi,%rcx,4)
	vmovups	%zmm1, 832(%rdi,%rcx,4)
	vmovups	%zmm2, 896(%rdi,%rcx,4)
	vmovups	%zmm3, 960(%rdi,%rcx,4)
	.loc	0 8 30 is_stmt 1                # triad.c:8:30
	addq	$256, %rcx                      # imm = 0x100
	addq	$-4, %r9
	jne	.LBB1_8
.LBB1_9:
	testq	%r8, %r8
	je	.LBB1_12
# %bb.10:
	leaq	(%rdi,%rcx,4), %r9
	addq	$192, %r9
	leaq	(%rsi,%rcx,4), %r10
	addq	$192, %r10
	shlq	$8, %r8
	xorl	%ecx, %ecx
.LBB1_11:                               # =>This Inner Loop Header: Depth=1
	.loc	0 9 16                          # triad.c:9:16
	vmovups	-192(%r10,%rcx), %zmm0
	vmovups	-128(%r10,%rcx), %zmm1
	vmovups	-64(%r10,%rcx), %zmm2
	vmovups	(%r10,%rcx), %zmm3
	.loc	0 9 14 is_stmt 0                # triad.c:9:14
	vmovups	%zmm0, -192(%r9,%rcx)
	vmovups	%zmm1, -128(%r9,%rcx)
	vmovups	%zmm2, -64(%r9,%rcx)
	vmovups	%zmm3, (%r9,%rcx)
	.loc	0 8 30 is_stmt 1                # triad.c:8:30
	addq	$256, %rcx                      # imm = 0x100
	cmpq	%rcx, %r8
	jne	.LBB1_11
.LBB1_12:
	.loc	0 8 5 is_stmt 0                 # triad.c:8:5
	cmpq	%rdx, %rax
	je	.LBB1_18
# %bb.13:
	testb	$56, %dl
	je	.LBB1_17
.LBB1_14:
	.loc	0 0 5                           # triad.c:0:5
	movq	%rax, %rcx
	.loc	0 8 5                           # triad.c:8:5
	movq	%rdx, %rax
	andq	$-8, %rax
.LBB1_15:                               # =>This Inner Loop Header: Depth=1
	.loc	0 9 16 is_stmt 1                # triad.c:9:16
	vmovups	(%rsi,%rcx,4), %ymm0
	.loc	0 9 14 is_stmt 0                # triad.c:9:14
	vmovups	%ymm0, (%rdi,%rcx,4)
	.loc	0 8 30 is_stmt 1                # triad.c:8:30
	addq	$8, %rcx
	cmpq	%rcx, %rax
	jne	.LBB1_15
# %bb.16:
	.loc	0 8 5 is_stmt 0                 # triad.c:8:5
	cmpq	%rdx, %rax
	je	.LBB1_18
.LBB1_17:                               # =>This Inner Loop Header: Depth=1
	.loc	0 9 16 is_stmt 1                # triad.c:9:16
	vmovss	(%rsi,%rax,4), %xmm0            # xmm0 = mem[0],zero,zero,zero
	.loc	0 9 14 is_stmt 0                # triad.c:9:14
	vmovss	%xmm0, (%rdi,%rax,4)
	.loc	0 8 30 is_stmt 1                # triad.c:8:30
	incq	%rax
	.loc	0 8 24 is_stmt 0                # triad.c:8:24
	cmpq	%rax, %rdx
	.loc	0 8 5                           # triad.c:8:5
	jne	.LBB1_17
.LBB1_18:
	.loc	0 10 1 is_stmt 1                # triad.c:10:1
	vzeroupper
	retq
.Ltmp1:
.Lfunc_end1:
                                        # -- End function
.Laddr_table_base0:
.Lline_table_start0:

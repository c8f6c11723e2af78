	.file	"triad.c"
	.text
.Ltext0:
	.file 0 "." "triad.c"
triad:
.LFB0:
	.file 1 "triad.c"
	.loc 1 2 1
.LBB2:
	.loc 1 3 24
	testq	%rcx, %rcx
	jle	.L1
	cmpq	$1, %rcx
	je	.L6
	movq	%rcx, %r8
	movapd	%xmm0, %xmm2
	xorl	%eax, %eax
	shrq	%r8
	unpcklpd	%xmm2, %xmm2
	salq	$4, %r8
.L4:
	.loc 1 4 25 discriminator 3
	movupd	(%rdx,%rax), %xmm1
	.loc 1 4 21 discriminator 3
	movupd	(%rsi,%rax), %xmm3
	.loc 1 4 25 discriminator 3
	mulpd	%xmm2, %xmm1
	.loc 1 4 21 discriminator 3
	addpd	%xmm3, %xmm1
	.loc 1 4 14 discriminator 3
	movups	%xmm1, (%rdi,%rax)
	addq	$16, %rax
	cmpq	%r8, %rax
	jne	.L4
	movq	%rcx, %rax
	andq	$-2, %rax
	andl	$1, %ecx
	je	.L9
.L3:
	.loc 1 4 25
	mulsd	(%rdx,%rax,8), %xmm0
	.loc 1 4 21
	addsd	(%rsi,%rax,8), %xmm0
	.loc 1 4 14
	movsd	%xmm0, (%rdi,%rax,8)
.L1:
.LBE2:
	.loc 1 5 1
	ret
.L9:
	ret
.L6:
.LBB3:
	.loc 1 3 15
	xorl	%eax, %eax
	jmp	.L3
.LBE3:
.LFE0:
copy:
.LFB1:
	.loc 1 7 1
.LBB4:
	.loc 1 8 24
	testq	%rdx, %rdx
	jle	.L10
	leaq	-1(%rdx), %rax
	cmpq	$2, %rax
	jbe	.L15
	movq	%rdx, %rcx
	xorl	%eax, %eax
	shrq	$2, %rcx
	salq	$4, %rcx
.L13:
	.loc 1 9 14 discriminator 3
	movups	(%rsi,%rax), %xmm1
	movups	%xmm1, (%rdi,%rax)
	addq	$16, %rax
	cmpq	%rax, %rcx
	jne	.L13
	movq	%rdx, %rax
	andq	$-4, %rax
	testb	$3, %dl
	je	.L17
.L12:
	.loc 1 9 14 is_stmt 0
	movss	(%rsi,%rax,4), %xmm0
	.loc 1 8 30 is_stmt 1
	leaq	1(%rax), %r8
	.loc 1 9 17
	leaq	0(,%rax,4), %rcx
	.loc 1 9 14
	movss	%xmm0, (%rdi,%rax,4)
	.loc 1 8 24
	cmpq	%r8, %rdx
	jle	.L10
	.loc 1 9 14
	movss	4(%rsi,%rcx), %xmm0
	.loc 1 8 30
	addq	$2, %rax
	.loc 1 9 14
	movss	%xmm0, 4(%rdi,%rcx)
	.loc 1 8 24
	cmpq	%rax, %rdx
	jle	.L10
	.loc 1 9 14
	movss	8(%rsi,%rcx), %xmm0
	movss	%xmm0, 8(%rdi,%rcx)
.L10:
.LBE4:
	.loc 1 10 1
	ret
.L17:
	ret
.L15:
.LBB5:
	.loc 1 8 15
	xorl	%eax, %eax
	jmp	.L12
.LBE5:
.LFE1:
.Letext0:
.Ldebug_info0:
.Ldebug_abbrev0:
	.sleb128 1
	.sleb128 6
.Ldebug_line0:
.LASF3:
.LASF4:
.LASF2:
.LASF0:
.LASF1:

/* SPDX-License-Identifier: MIT */
/*
 * begin.S -- keep the registers of a transaction's begin, and return there again (x86-64, System V).
 *
 * The order of the registers is that of struct xac_itm_jump (itm.h).  There is no note of a
 * shadow stack, so the system gives none to programs that link this.
 */
	.text

/* uint32_t _ITM_beginTransaction(uint32_t properties, ...) */
	.globl	_ITM_beginTransaction
	.type	_ITM_beginTransaction, @function
	.p2align 4
_ITM_beginTransaction:
	.cfi_startproc
	leaq	8(%rsp), %rax		/* the stack of the caller, after the return */
	movq	(%rsp), %rcx		/* where it goes on */
	subq	$72, %rsp
	.cfi_adjust_cfa_offset 72
	movq	%rax, (%rsp)
	movq	%rbx, 8(%rsp)
	movq	%rbp, 16(%rsp)
	movq	%r12, 24(%rsp)
	movq	%r13, 32(%rsp)
	movq	%r14, 40(%rsp)
	movq	%r15, 48(%rsp)
	movq	%rcx, 56(%rsp)
	movq	%rsp, %rsi
	call	xac_itm_begin
	addq	$72, %rsp
	.cfi_adjust_cfa_offset -72
	ret
	.cfi_endproc
	.size	_ITM_beginTransaction, . - _ITM_beginTransaction

/* void xac_itm_jump(const struct xac_itm_jump *to, uint32_t result) */
	.globl	xac_itm_jump
	.hidden	xac_itm_jump
	.hidden	xac_itm_begin
	.type	xac_itm_jump, @function
	.p2align 4
xac_itm_jump:
	.cfi_startproc
	movl	%esi, %eax
	movq	8(%rdi), %rbx
	movq	16(%rdi), %rbp
	movq	24(%rdi), %r12
	movq	32(%rdi), %r13
	movq	40(%rdi), %r14
	movq	48(%rdi), %r15
	movq	56(%rdi), %rcx
	movq	(%rdi), %rsp
	jmp	*%rcx
	.cfi_endproc
	.size	xac_itm_jump, . - xac_itm_jump

	.section .note.GNU-stack,"",@progbits

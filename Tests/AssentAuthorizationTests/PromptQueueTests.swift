import Testing

@testable import AssentAuthorization

@Suite struct PromptQueueTests {
    @Test("One call asks; the others wait in order, and those of one key share what came of it")
    func order() {
        var queue = PromptQueue()
        let first = queue.enter("a")
        let (b, a, c) = (queue.enter("b"), queue.enter("a"), queue.enter("c"))
        #expect(first.mayAsk && ![b, a, c].contains { $0.mayAsk })
        #expect(queue.finish(first.ticket, isShared: true) == .init(told: [a.ticket], next: b.ticket))
        #expect(queue.finish(b.ticket, isShared: true) == .init(told: [], next: c.ticket))
        #expect(queue.finish(c.ticket, isShared: true) == .init(told: [], next: nil))
        #expect(queue.enter("d").mayAsk)
    }

    @Test("A call that ended for a reason of its own tells nobody, and the next one asks")
    func ownEnd() {
        var queue = PromptQueue()
        let first = queue.enter("a")
        let (same, other) = (queue.enter("a"), queue.enter("b"))
        #expect(queue.finish(first.ticket, isShared: false) == .init(told: [], next: same.ticket))
        #expect(queue.finish(same.ticket, isShared: true) == .init(told: [], next: other.ticket))
    }

    @Test("Who gave up is not asked, and who does not ask cannot end the turn of another")
    func givingUp() {
        var queue = PromptQueue()
        let first = queue.enter("a")
        let (second, third) = (queue.enter("b"), queue.enter("c"))
        #expect(queue.withdraw(second.ticket))
        #expect(!queue.withdraw(second.ticket) && !queue.withdraw(first.ticket))
        #expect(queue.finish(third.ticket, isShared: true) == .init())
        #expect(queue.finish(first.ticket, isShared: true) == .init(told: [], next: third.ticket))
    }
}

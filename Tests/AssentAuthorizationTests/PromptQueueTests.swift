import Testing

@testable import AssentAuthorization

@Suite struct PromptQueueTests {
    @Test("One call asks; the others wait in order, and those of one key share what came of it")
    func order() {
        var queue = PromptQueue()
        let first = queue.enter("a")
        let (b, a, c) = (queue.enter("b"), queue.enter("a"), queue.enter("c"))
        #expect(first.mayAsk && ![b, a, c].contains { $0.mayAsk })
        let turn1 = queue.finish(first.ticket, isShared: true)
        #expect(turn1 == .init(told: [a.ticket], next: b.ticket))
        let turn2 = queue.finish(b.ticket, isShared: true)
        #expect(turn2 == .init(told: [], next: c.ticket))
        let turn3 = queue.finish(c.ticket, isShared: true)
        #expect(turn3 == .init(told: [], next: nil))
        let last = queue.enter("d")
        #expect(last.mayAsk)
    }

    @Test("A call that ended for a reason of its own tells nobody, and the next one asks")
    func ownEnd() {
        var queue = PromptQueue()
        let first = queue.enter("a")
        let (same, other) = (queue.enter("a"), queue.enter("b"))
        let turn4 = queue.finish(first.ticket, isShared: false)
        #expect(turn4 == .init(told: [], next: same.ticket))
        let turn5 = queue.finish(same.ticket, isShared: true)
        #expect(turn5 == .init(told: [], next: other.ticket))
    }

    @Test("Who gave up is not asked, and who does not ask cannot end the turn of another")
    func givingUp() {
        var queue = PromptQueue()
        let first = queue.enter("a")
        let (second, third) = (queue.enter("b"), queue.enter("c"))
        let withdrawn = [second, second, first].map { queue.withdraw($0.ticket) }
        #expect(withdrawn == [true, false, false])
        let foreign = queue.finish(third.ticket, isShared: true)
        #expect(foreign == .init())
        let turn6 = queue.finish(first.ticket, isShared: true)
        #expect(turn6 == .init(told: [], next: third.ticket))
    }
}

import AssentTesting
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

    @Test("So many calls may wait, and one more when somebody has left the line")
    func bound() {
        var queue = PromptQueue()
        let first = queue.enter("a")
        #expect(first.mayAsk)
        var last = 0
        for number in 1...PromptQueue.limit {
            #expect(!queue.isFull)
            last = queue.enter("\(number)").ticket
        }
        #expect(queue.isFull && queue.count == PromptQueue.limit)
        let hasLeft = queue.withdraw(last)
        #expect(hasLeft && !queue.isFull)
    }

    @Test("A call for which there is no place in the line ends at once, and says why; the others are asked as before")
    func full() async {
        let coordinator = StepUpCoordinator()
        let clock = ManualClock()
        guard case .lead(let turn) = await coordinator.enter("0", until: nil, clock: clock) else {
            Issue.record("the first one asks")
            return
        }
        await withTaskGroup(of: Bool.self) { group in
            for number in 1...PromptQueue.limit {
                group.addTask {
                    let role = await coordinator.enter("\(number)", until: nil, clock: clock)
                    guard case .lead(let turn) = role else { return false }
                    await coordinator.finish(turn, nil)
                    return true
                }
            }
            while await coordinator.count < PromptQueue.limit { await Task.yield() }
            if case .follow(.failure(let error)) = await coordinator.enter("x", until: nil, clock: clock) {
                #expect((error as? AuthorizationError)?.code == .tooManyWaiting)
            } else {
                Issue.record("there is a place")
            }
            await coordinator.finish(turn, nil)
            let asked = await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            #expect(asked == PromptQueue.limit)
        }
    }
}

#if PostgreSQL && os(Linux)
import Testing

@testable import AssentStore

@Suite("What a connection's thread is told")
struct PostgreSQLInboxTests {
    private func job(_ call: UInt64) -> PostgreSQLWorker.Job {
        PostgreSQLWorker.Job(call: call, work: PostgreSQLWork([.read("SELECT 1")]))
    }

    @Test("A thread is woken for a job where it has found none before, once, and not while it is awake")
    func waking() {
        var inbox = PostgreSQLWorker.Inbox()
        // It opens its connection, then does a job, and looks after each.
        var isWoken = [inbox.put(job(1))]
        var taken = [inbox.take()]
        isWoken.append(inbox.put(job(2)))
        taken += [inbox.take(), inbox.take()]
        // It has found none.
        isWoken.append(inbox.put(job(3)))
        taken.append(inbox.take())
        isWoken.append(inbox.put(job(4)))
        #expect(isWoken == [false, false, true, false])
        #expect(taken.map { $0?.call } == [1, 2, nil, 3])
    }

    @Test("A cancellation that is heard late hides no other, and one that is heard early counts")
    func anyOrder() {
        var inbox = PostgreSQLWorker.Inbox()
        _ = inbox.put(job(1))
        let taken = [inbox.take(), inbox.take()].map { $0?.call }
        #expect(taken == [1, nil] && !inbox.isCancelled(1))
        // The second call is cancelled before its job is there; then the first one's cancellation comes in late.
        inbox.cancel(2)
        _ = inbox.put(job(2))
        let second = inbox.take()
        inbox.cancel(1)
        #expect(second?.call == 2 && inbox.isCancelled(2))
        _ = inbox.put(job(3))
        let third = inbox.take()
        #expect(third?.call == 3 && !inbox.isCancelled(3) && !inbox.isCancelled(2))
    }
}
#endif

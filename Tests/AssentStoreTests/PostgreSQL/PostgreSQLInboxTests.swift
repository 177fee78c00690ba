#if PostgreSQL && os(Linux)
import Testing

@testable import AssentStore

@Suite("What a connection's thread is told")
struct PostgreSQLInboxTests {
    private func job(_ call: UInt64) -> PostgreSQLWorker.Job {
        PostgreSQLWorker.Job(call: call, work: PostgreSQLWork([.read("SELECT 1")]))
    }

    @Test("A cancellation that is heard late hides no other, and one that is heard early counts")
    func anyOrder() {
        var inbox = PostgreSQLWorker.Inbox()
        inbox.job = job(1)
        let taken = [inbox.take(), inbox.take()].map { $0?.call }
        #expect(taken == [1, nil] && !inbox.isCancelled(1))
        // The second call is cancelled before its job is there; then the first one's cancellation comes in late.
        inbox.cancel(2)
        inbox.job = job(2)
        let second = inbox.take()
        inbox.cancel(1)
        #expect(second?.call == 2 && inbox.isCancelled(2))
        inbox.job = job(3)
        let third = inbox.take()
        #expect(third?.call == 3 && !inbox.isCancelled(3) && !inbox.isCancelled(2))
    }
}
#endif

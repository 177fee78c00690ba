import AssentCore
import Foundation
import Testing

@testable import AssentServer

@Suite("A service that ends its connections")
struct ClosingConnectionTests {
    @Test("What may be sent once goes out on a connection of its own, so that none that is just closing loses it")
    func ownConnection() async throws {
        try await ServerFixture.run { fixture in
            let body = #"{"amount":"200.00"}"#
            let used = Locked<Set<ObjectIdentifier>>([])
            // It answers a connection's first request as if it kept the connection, and ends it at the second.
            fixture.upstream.answer { request, peer in
                guard used.withLock({ $0.insert(ObjectIdentifier(peer.channel)).inserted }) else {
                    return peer.close()
                }
                TestUpstream.answering(request, peer)
            }
            let session = try await fixture.session()
            // A request that may be repeated leaves a connection behind that is kept.
            let look = try await fixture.send("GET", fixture.gateway("/files/a"), ServerFixture.session(session))
            #expect(look.status == 200)
            for _ in 0..<4 {
                let id = try await fixture.completedTransaction(body: body, session: session)
                let reply = try await fixture.send(
                    "POST", fixture.gateway("/nods?_txid=" + id),
                    [("Content-Type", "application/json")] + ServerFixture.session(session), text: body)
                #expect(reply.status == 201, "\(reply.text)")
            }
            #expect(used.withLock { $0.count } == 5)
        }
    }
}

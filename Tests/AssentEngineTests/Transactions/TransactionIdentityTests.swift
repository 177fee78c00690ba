import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("By what a request is known when it comes again, and what is kept of it")
struct TransactionIdentityTests {
    @Test("Each thing that a transaction is bound to makes another request, and nothing else does")
    func differing() async throws {
        let fixture = try await TransactionFixture()
        let usual = try #require(try fixture.binding().requestKey(idempotencyKey: nil))
        #expect(try fixture.binding().requestKey(idempotencyKey: nil) == usual)
        var seen: Set = [usual]
        for alteration in TransactionBindingTests.alterations {
            let key = try #require(try alteration.binding(fixture).requestKey(idempotencyKey: nil))
            #expect(seen.insert(key).inserted, "\(alteration.reason)")
        }
        // One of them has the text that a grant and a key have above: in another place it is another request.
        for key in ["", "null", "a", "A", "another"] {
            let own = try #require(try fixture.binding().requestKey(idempotencyKey: key))
            #expect(seen.insert(own).inserted, "\(key)")
        }
    }

    @Test("At the gateway a request whose body was not read is known again only if it has none")
    func unread() async throws {
        let fixture = try await TransactionFixture()
        let policy = try TransactionFixture.policy(bind: [.method], display: [])
        for (method, isKnown) in [
            ("GET", true), ("HEAD", true), ("POST", false), ("PUT", false), ("DELETE", false), ("PATCH", false),
            ("OPTIONS", false), ("get", false),
        ] {
            let content = RequestContent(method: method, mediaType: nil, body: nil)
            let binding = try fixture.binding(policy: policy, content: content)
            #expect((binding.requestKey(idempotencyKey: "key") != nil) == isKnown, "\(method)")
            let asked = try fixture.binding(policy: policy, content: content, maker: .caller("p"))
            #expect(asked.requestKey(idempotencyKey: nil) != nil, "REST binds what it is told")
        }
        let empty = RequestContent(method: "POST", mediaType: nil, body: [])
        #expect(try fixture.binding(policy: policy, content: empty).requestKey(idempotencyKey: nil) != nil)
    }

    @Test("An approval that waits for a journey's next page is read as it was written, part by part")
    func stored() throws {
        let lines = [DisplayField(label: "Amount", value: "2.00 EUR"), DisplayField(label: "To", value: "Bob")]
        for isBound in [true, false] {
            var approval = PendingApproval(
                id: "id", journey: "Confirm", method: isBound ? "POST" : nil, resource: "https://a.example:443/x",
                contentType: isBound ? "application/json" : nil, bodySHA256: isBound ? "digest" : nil,
                display: isBound ? lines : [], expiresAt: 1_767_225_600)
            approval.clientID = isBound ? "bank-app" : nil
            approval.language = isBound ? "de" : "en"
            let stored = approval.stored
            let read = try #require(PendingApproval(stored: stored))
            #expect(read == approval && read.clientID == approval.clientID)
            for name in ["id", "journey", "resource", "display", "expiresAt"] {
                var lacking = try #require(stored.object)
                lacking[name] = nil
                #expect(PendingApproval(stored: .object(lacking)) == nil, "\(name)")
            }
        }
        #expect(PendingApproval(stored: .null) == nil)
    }

    @Test("Who asked is stored so that nobody else's name reads as the gateway's, or as another's")
    func makers() {
        let makers: [TransactionMaker] = [
            .gateway, .caller("a"), .caller("b"), .caller("gateway"), .caller("caller a"),
        ]
        #expect(Set(makers.map(\.text)).count == makers.count)
        for maker in makers {
            #expect(TransactionMaker(stored: maker.text) == maker)
            #expect(maker.kind == (maker == .gateway ? "GATEWAY" : "POLICY"))
            #expect(maker.replacesUselessTransactions == (maker != .gateway))
        }
        // What versions before makers have stored.
        #expect(!makers.map(\.text).contains("") && TransactionMaker(stored: "") != .gateway)
    }
}

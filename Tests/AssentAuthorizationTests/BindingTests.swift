import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@Suite struct BindingTests {
    @Test(
        "An approval for another request is refused before the user is asked",
        arguments: [
            { $0["transactionId"] = "another" }, { $0["transactionId"] = nil }, { $0["method"] = "PUT" },
            { $0["method"] = "post" }, { $0["method"] = 5 }, { $0["resource"] = "https://api.bank.example/transfers2" },
            { $0["resource"] = "https://api.bank.example/transfers/" },
            { $0["resource"] = "https://evil.example/transfers" },
            { $0["resource"] = "http://api.bank.example/transfers" },
            { $0["resource"] = "https://api.bank.example:444/transfers" },
            { $0["resource"] = "https://api.bank.example/transfers?to=Eve" }, { $0["resource"] = "" },
            { $0["resource"] = "https://api.bank.example/transf%2Fers" }, { $0["contentType"] = "text/plain" },
            { $0["bodySHA256"] = .string(Base64URL.encode(SHA2.sha256([]))) }, { $0["bodySHA256"] = "" },
            { $0["bodySHA256"] = ["x"] }, { $0["display"] = ["Amount"] }, { $0["display"] = [["label": "Amount"]] },
            { $0["display"] = [["label": "To", "value": "Bob\u{1B}[2K"]] },
            { $0["display"] = [["label": "To", "value": "Bob \u{202E}eve"]] },
            { $0["display"] = .array(Array(repeating: ["label": "a", "value": "b"], count: 51)) },
        ] as [@Sendable (inout JSONObject) -> Void])
    func other(change: @escaping @Sendable (inout JSONObject) -> Void) async throws {
        let world = World()
        world.change { $0.statement = change }
        await #expect(throws: AuthorizationError.like(.approvalForAnotherRequest)) {
            try await world.client().send(try post()) { _ in
                Issue.record("nobody should be asked")
                return .decline
            }
        }
        #expect(world.calls.count == 1)
    }

    @Test("A statement that changes in a later step is noticed")
    func changes() async throws {
        let world = World()
        let count = Locked(0)
        world.change {
            $0.journey = { [step = world.step] exchange in
                let number = count.withLock {
                    $0 += 1; return $0
                }
                let statement: JSONValue = [
                    "_type": "AssentTransaction", "transactionId": .string(txid),
                    "bodySHA256": .string(Base64URL.encode(SHA2.sha256(number == 1 ? Array(transfer.utf8) : []))),
                ]
                return .json(
                    200, step(["type": "MetadataCallback", "output": [["name": "data", "value": statement]]]))
            }
        }
        await #expect(throws: AuthorizationError.like(.approvalForAnotherRequest)) {
            try await world.client().send(try post(), approve: agree)
        }
        #expect(world.calls.count == 1 && world.steps.count == 2)
    }

    @Test("Two statements in one step are refused")
    func two() async throws {
        let world = World()
        world.change {
            $0.journey = { _ in
                let data: JSONValue = ["_type": "AssentTransaction", "transactionId": .string(txid)]
                let metadata: JSONValue = ["type": "MetadataCallback", "output": [["name": "data", "value": data]]]
                return .json(200, ["authId": "A", "callbacks": [metadata, metadata]])
            }
        }
        await #expect(throws: AuthorizationError.like(.approvalForAnotherRequest)) {
            try await world.client().send(try post(), approve: agree)
        }
    }

    @Test("Against AM, which does not say, the approval is marked, or refused where the configuration insists")
    func notStated() async throws {
        let world = World()
        world.change { $0.states = false }
        var binding: ApprovalBinding?
        let reply = try await world.client().send(try post()) { approval in
            binding = approval.binding
            return agree(&approval)
        }
        #expect(reply.status == 201 && binding == .notStated)
        await #expect(throws: AuthorizationError.like(.approvalNotBound)) {
            try await world.client(requiresBinding: true).send(try post(), approve: agree)
        }
        #expect(world.calls.count == 3)
    }

    @Test("Where the configuration insists, an approval for a part of the request, or without any step, is refused")
    func insists() async throws {
        for name in ["method", "resource", "bodySHA256"] {
            let world = World()
            world.change { $0.statement = { $0[name] = nil } }
            await #expect(throws: AuthorizationError.like(.approvalNotBound)) {
                try await world.client(requiresBinding: true).send(try post(), approve: agree)
            }
        }
        let world = World()
        #expect(try await world.client(requiresBinding: true).send(try post(), approve: agree).status == 201)
        world.change { $0.journey = { _ in .json(200, ["tokenId": "SESS"]) } }
        await #expect(throws: AuthorizationError.like(.approvalNotBound)) {
            try await world.client(requiresBinding: true).send(try post(), approve: agree)
        }
    }

    @Test("Only what the server states counts as bound")
    func partly() async throws {
        let world = World()
        world.change {
            $0.statement = {
                $0["bodySHA256"] = nil
                $0["contentType"] = nil
                $0["method"] = nil
                $0["resource"] = "https://api.bank.example:443/transfers"
            }
        }
        var binding: ApprovalBinding?
        _ = try await world.client().send(try post("/transfers?q=1")) { approval in
            binding = approval.binding
            return agree(&approval)
        }
        #expect(binding == .stated([.resource]))
    }

    @Test(
        "A URL that every server reads alike is the same URL",
        arguments: [
            ("/a%7Eb", "/a~b"), ("/a~b", "/a%7eb"), ("//a///b", "/a/b"), ("/a%2fb", "/a%2Fb"),
            ("/a?x=%61&y=+", "/a?x=a&y=+"),
        ])
    func sameURL(own: String, stated: String) async throws {
        let world = World()
        world.change { $0.statement = { $0["resource"] = .string("https://API.bank.example:443\(stated)") } }
        #expect(try await world.client().send(try post(own), approve: agree).status == 201)
    }

    @Test("Media types are compared without regard to case and spaces")
    func mediaType() async throws {
        let world = World()
        world.change { $0.statement = { $0["contentType"] = "Application/JSON;charset=utf-8" } }
        var call = try post()
        call.request.headerFields[.contentType] = "application/json ; charset=UTF-8"
        #expect(try await world.client().send(call, approve: agree).status == 201)
    }

    @Test("A multipart boundary in another case is another media type")
    func boundary() async throws {
        let world = World()
        world.change { $0.statement = { $0["contentType"] = "multipart/form-data; boundary=abc" } }
        var call = try post()
        call.request.headerFields[.contentType] = "multipart/form-data; boundary=ABC"
        await #expect(throws: AuthorizationError.like(.approvalForAnotherRequest)) {
            try await world.client().send(call, approve: agree)
        }
        call.request.headerFields[.contentType] = "Multipart/Form-Data;boundary=abc"
        #expect(try await world.client().send(call, approve: agree).status == 201)
    }

    @Test("A body that is a stream is repeated byte for byte")
    func stream() async throws {
        let world = World()
        let chunks: [[UInt8]] = [Array(transfer.utf8.prefix(10)), Array(transfer.utf8.dropFirst(10))]
        let body = HTTPBody(length: nil, isReplayable: true) {
            let rest = Locked(chunks)
            return { rest.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
        }
        let call = HTTPCall(
            try HTTPRequest(.post, url: "\(api)/transfers", headerFields: [.contentType: "application/json"]),
            body: body)
        #expect(try await world.client().send(call, approve: agree).status == 201)
        #expect(world.calls.map(\.text) == [transfer, transfer])
    }
}

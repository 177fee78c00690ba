import AssentCore
import Foundation
import HTTPTypes
import Testing

@testable import AssentServer

@Suite("Replies and requests that break off")
struct TruncationTests {
    private static let body = #"{"amount":"200.00"}"#

    @Test("A reply that the service breaks off is broken off for the client as well, and its status stays on record")
    func reply() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let id = try await fixture.completedTransaction(body: Self.body, session: token)
            fixture.upstream.answer { _, peer in
                peer.send("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{")
                peer.close()
            }
            let reply = try await fixture.raw(
                "POST /nods?_txid=\(id) HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\nConnection: close\r\n"
                    + "Content-Type: application/json\r\nContent-Length: \(Self.body.utf8.count)\r\n\r\n\(Self.body)")
            #expect(!reply.contains("0\r\n\r\n"))
            #expect(reply.isEmpty || reply.hasPrefix("HTTP/1.1 201 "))
            fixture.upstream.answer(with: TestUpstream.answering)
            let again = try await fixture.send(
                "POST", fixture.gateway("/nods?_txid=\(id)"),
                ServerFixture.session(token) + [("Content-Type", "application/json")], text: Self.body)
            #expect(again.status == 409)
            #expect(again.json["outcome"] == ["state": "answered", "status": 201])
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test("A service that answers before it has the whole body: the client gets the answer, and the next one is served")
    func earlyReply() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            fixture.upstream.answerEarly { _, peer in peer.answer("413 Content Too Large") }
            for rest in ["", String(repeating: "x", count: 990)] {
                for _ in 0..<20 {
                    let connection = try await fixture.rawConnection()
                    try await connection.send(
                        "PUT /files/large HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\n"
                            + "Content-Length: 1000\r\n\r\n0123456789")
                    #expect(await connection.reply().hasPrefix("HTTP/1.1 413 "))
                    try await connection.send(rest)
                    await connection.close()
                }
            }
            let next = try await fixture.send("GET", fixture.gateway("/files/x"), ServerFixture.session(token))
            #expect(next.status == 413)
        }
    }

    @Test("Such an answer says that it is the last of its connection, and what follows there is not answered")
    func lastReply() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            fixture.upstream.answerEarly { _, peer in peer.answer("413 Content Too Large") }
            let rest = String(repeating: "x", count: 990)
            for _ in 0..<20 {
                let connection = try await fixture.rawConnection()
                try await connection.send(
                    "PUT /files/large HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\n"
                        + "Content-Length: 1000\r\n\r\n0123456789")
                let reply = await connection.reply()
                #expect(reply.hasPrefix("HTTP/1.1 413 ") && reply.lowercased().contains("connection: close"))
                try await connection.send(rest + "GET /files/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(await connection.untilClosed().isEmpty)
            }
        }
    }

    @Test("A sealed request is answered so as well: the reply says it outside of what is sealed")
    func lastSealedReply() async throws {
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            fixture.upstream.answerEarly { _, peer in peer.answer("413 Content Too Large") }
            let content = [UInt8](repeating: UInt8(ascii: "x"), count: 200_000)
            let sealed = try client.sealed(client.request(.put, "/open"), content, number: 1)
            let connection = try await fixture.rawConnection()
            try await connection.send(
                "POST /assent-pe/1/message HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/assent-pe\r\n"
                    + "Content-Length: \(sealed.bytes.count)\r\n\r\n")
            try await connection.send(Array(sealed.bytes.dropLast(1000)))
            #expect(await connection.reply().lowercased().contains("connection: close"))
            await connection.close()
        }
    }

    @Test("A request that breaks off in its body spends nothing and reaches nobody")
    func request() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let id = try await fixture.completedTransaction(body: Self.body, session: token)
            for part in ["", "{", String(Self.body.dropLast())] {
                let connection = try await fixture.rawConnection()
                try await connection.send(
                    "POST /nods?_txid=\(id) HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\n"
                        + "Content-Type: application/json\r\nContent-Length: \(Self.body.utf8.count)\r\n\r\n\(part)")
                await connection.close()
            }
            let paid = try await fixture.send(
                "POST", fixture.gateway("/nods?_txid=\(id)"),
                ServerFixture.session(token) + [("Content-Type", "application/json")], text: Self.body)
            #expect(paid.status == 201)
            #expect(fixture.upstream.requests.count == 1)
        }
    }
}

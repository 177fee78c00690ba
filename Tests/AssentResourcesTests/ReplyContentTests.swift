import Assent
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@testable import AssentResources

@Suite("What comes back of a resource")
struct ReplyContentTests {
    private func answering(_ body: HTTPBody, _ fields: HTTPFields = [:]) -> ResourceWorld {
        let world = ResourceWorld()
        world.behaviour.withLock {
            $0.resource = { _ in HTTPReply(HTTPResponse(status: .ok, headerFields: fields), body: body) }
        }
        return world
    }

    /// A reply of chunks; what has been read of it is counted.
    private func streamed(
        length: Int?, _ read: Locked<Int>, _ next: @escaping @Sendable (Int) throws -> [UInt8]?
    ) -> HTTPBody {
        HTTPBody(length: length, isReplayable: false) {
            let number = Locked(0)
            return {
                let turn = number.withLock { count in
                    count += 1
                    return count - 1
                }
                let chunk = try next(turn)
                read.withLock { $0 += chunk?.count ?? 0 }
                return chunk
            }
        }
    }

    private func fetched(_ world: ResourceWorld) async throws(ResourceError) -> ResourceResponse {
        let assent: Assent
        do { assent = try await world.assent() } catch { throw ResourceError.unforeseen(error, .nobody) }
        return try await assent.deviceClient.sendUnauthenticatedRequest(.get("status"))
    }

    private static let limit = 16 << 20

    @Test(
        "6 The content arrives byte for byte, whatever its type says",
        arguments: [
            [], [0], Array("\u{FEFF}{\"a\":1}".utf8), [0xC3, 0x28, 0xFF, 0xFE], [0x1F, 0x8B, 8, 0],
            [UInt8](0...255), Array("\r\n\r\n".utf8),
        ])
    func exact(bytes: [UInt8]) async throws {
        for type in ["application/json", "text/plain; charset=utf-16", "image/png"] {
            // What a coding means is the app's to know: nothing asks for one, and nothing is undone.
            for coding in [nil, "gzip", "br"] {
                var fields: HTTPFields = [.contentType: type]
                fields[.contentEncoding] = coding
                let response = try await fetched(answering(HTTPBody(bytes), fields))
                #expect(response.data == bytes)
                #expect(response.headerFields == fields && response.raw.headerFields == fields)
            }
        }
    }

    @Test("A reply that comes after its task was cancelled is not handed over")
    func cancelled() async throws {
        let (gate, opens) = AsyncStream.makeStream(of: Void.self)
        let (begun, begins) = AsyncStream.makeStream(of: Void.self)
        let world = ResourceWorld()
        world.behaviour.withLock { behaviour in
            // This transport does not look at cancellations, so that the reply comes all the same.
            behaviour.resource = { _ in
                begins.yield()
                await Task.detached { for await _ in gate { break } }.value
                return .json(200, [:])
            }
        }
        let assent = try await world.assent()
        let task = Task { try await assent.deviceClient.sendUnauthenticatedRequest(.get("status")) }
        for await _ in begun { break }
        task.cancel()
        opens.yield()
        let error = await #expect(throws: ResourceError.self) { try await task.value }
        #expect(error?.number == 9006)
    }

    @Test("6 No call asks for a coding of the content")
    func coding() async throws {
        let world = answering(.empty)
        _ = try await fetched(world)
        #expect(world.calls.last?.request.headerFields[.acceptEncoding] == nil)
    }

    @Test("6 16 MiB are taken, whole or in chunks; one byte more is -1103, and is not read to its end")
    func limits() async throws {
        let read = Locked(0)
        func body(_ count: Int, length: Int?) -> HTTPBody {
            streamed(length: length, read) { number in
                let left = count - number << 20
                return left > 0 ? [UInt8](repeating: 7, count: min(left, 1 << 20)) : nil
            }
        }
        for length in [nil, Self.limit] {
            #expect(try await fetched(answering(body(Self.limit, length: length))).data.count == Self.limit)
        }
        for length in [nil, Self.limit + 1] {
            read.withLock { $0 = 0 }
            let error = await #expect(throws: ResourceError.self) {
                try await fetched(answering(body(Self.limit + 1, length: length)))
            }
            #expect(error?.domain == .url && error?.number == -1103)
            #expect(read.withLock { $0 } <= Self.limit + 1)
            if length != nil { #expect(read.withLock { $0 } == 0) }
        }
    }

    @Test("6 A download of JSON that is longer than memory takes arrives also where replies may be decisions")
    func longJSON() async throws {
        let count = (16 << 20) + 3
        for length in [nil, count] {
            let body = streamed(length: length, Locked(0)) { number in
                let left = count - number << 20
                return left > 0 ? [UInt8](repeating: 0x20, count: min(left, 1 << 20)) : nil
            }
            let world = answering(body, [.contentType: "application/json"])
            let place = FileManager.default.temporaryDirectory.appending(path: "assent-\(UUID()).json")
            defer { try? FileManager.default.removeItem(at: place) }
            let assent = try await world.assent([api: .accessToken(of: [.user, .device]).acceptingDecisions()])
            let response = try await assent.deviceClient.sendUnauthenticatedRequest(
                ResourceRequest.get("status").download(to: place.path))
            #expect(response.file == place.path)
            #expect(try FileManager.default.attributesOfItem(atPath: place.path)[.size] as? Int == count)
        }
    }

    @Test("6 A reply without an end is -1103 as soon as it is longer than 16 MiB")
    func endless() async throws {
        let read = Locked(0)
        let body = streamed(length: nil, read) { _ in [UInt8](repeating: 7, count: 1 << 20) }
        let error = await #expect(throws: ResourceError.self) { try await fetched(answering(body)) }
        #expect(error?.domain == .url && error?.number == -1103)
        #expect(read.withLock { $0 } <= Self.limit + 1 << 20)
    }

    @Test("6 A reply that ends before its length, or is no reply, is an error, and no part of it is handed over")
    func wrongLength() async throws {
        let causes: [(HTTPTransportError.Code, Int)] = [(.connectionClosed, -1005), (.malformedReply, -1011)]
        for (code, number) in causes {
            let body = streamed(length: 10, Locked(0)) { chunk in
                guard chunk == 0 else { throw HTTPTransportError(code, "x") }
                return [1, 2, 3]
            }
            let error = await #expect(throws: ResourceError.self) { try await fetched(answering(body)) }
            #expect(error?.domain == .url && error?.number == number)
        }
    }

    @Test("24 Further fields of an app reach the resource as they are given, with the credential beside them")
    func given() async throws {
        let world = ResourceWorld()
        let assent = try await world.assent(signedIn: true)
        let name = try #require(HTTPField.Name("X-Own"))
        let values = ["a", "", "a", String(repeating: "x", count: 8 << 10), "b, c"]
        var headers = HTTPFields()
        for value in values { headers.append(HTTPField(name: name, value: value)) }
        _ = try await assent.userClient.sendAuthenticatedRequest(.get("accounts", headers: headers))
        _ = try await assent.deviceClient.sendUnauthenticatedRequest(.get("status", headers: headers))
        #expect(world.calls.count == 2)
        for call in world.calls { #expect(call.request.headerFields[values: name] == values) }
        #expect(world.calls.map { $0.request.headerFields[.authorization] } == ["Bearer access", nil])
    }

    @Test("12 Each of the six methods is sent as it is, by the user and by nobody")
    func methods() async throws {
        let world = ResourceWorld()
        let assent = try await world.assent(signedIn: true)
        for method in ResourceRequest.methods {
            let request = ResourceRequest(path: "things", method: method)
            _ = try await assent.userClient.sendAuthenticatedRequest(request)
            _ = try await assent.deviceClient.sendUnauthenticatedRequest(request)
        }
        #expect(world.calls.map(\.request.method) == ResourceRequest.methods.flatMap { [$0, $0] })
    }

    @Test("7 A token that has ended is renewed once; what cannot be renewed is 9010, and the resource is asked no more")
    func ended() async throws {
        let world = ResourceWorld()
        let assent = try await world.assent(signedIn: true)
        _ = try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
        let (asked, before) = (Locked(0), world.calls.count)
        world.behaviour.withLock {
            $0.resource = { _ in .json(401, [:], headers: [.wwwAuthenticate: #"Bearer error="invalid_token""#]) }
            $0.hasSession = false
            $0.token = { _ in
                asked.withLock { $0 += 1 }
                return .json(400, ["error": "invalid_grant"])
            }
        }
        let error = await #expect(throws: ResourceError.self) {
            try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
        }
        #expect(error?.number == 9010 && error?.domain == .fetchResource)
        #expect(world.calls.count == before + 1)
        #expect(asked.withLock { $0 } <= 2)
    }

    @Test("7 A resource that refuses also the renewed token is not asked a third time, and its 401 is the response")
    func refusedAgain() async throws {
        let world = ResourceWorld()
        let number = Locked(0)
        world.behaviour.withLock {
            $0.resource = { _ in .json(401, [:], headers: [.wwwAuthenticate: #"Bearer error="invalid_token""#]) }
            $0.token = { _ in
                let token = number.withLock {
                    $0 += 1
                    return $0
                }
                return .json(
                    200, ["access_token": .string("access-\(token)"), "refresh_token": "r", "expires_in": 600])
            }
        }
        let assent = try await world.assent(signedIn: true)
        let response = try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
        #expect(response.status == 401 && response.error?.number == 10106)
        #expect(world.calls.count == 2)
    }

    @Test("2 An absolute URL is called where its origin is named, and refused before anything is sent where not")
    func absolute() async throws {
        let world = ResourceWorld()
        let other = "https://other.bank.example"
        let assent = try await world.assent([api: .accessToken, other: .nothing], signedIn: true)
        _ = try await assent.deviceClient.sendUnauthenticatedRequest(.get("\(other)/x"))
        #expect(world.calls.map(\.request.url) == ["\(other)/x"])
        let sent = world.sent.count
        for url in ["https://third.example/x", "https://other.bank.example.evil.example/x", "\(other):8443/x"] {
            let error = await #expect(throws: ResourceError.self) {
                try await assent.deviceClient.sendUnauthenticatedRequest(.get(url))
            }
            #expect(error?.number == 10101 && error?.domain == .fetchUnauthenticatedResource, "\(url)")
        }
        // The user's credential is not for the other origin.
        let error = await #expect(throws: ResourceError.self) {
            try await assent.userClient.sendAuthenticatedRequest(.get("\(other)/x"))
        }
        #expect(error?.number == 10101 && world.sent.count == sent)
    }
}

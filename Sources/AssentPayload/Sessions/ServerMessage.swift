package import AssentCore
package import HTTPTypes

/// Reads one sealed request as it arrives, without I/O, and says what the listener does
/// (docs/payload-encryption.md, "What a listener does").
package struct ServerMessage {
    /// What has happened.
    package enum Event: Sendable {
        /// Bytes of the body.
        case bytes([UInt8])
        /// The body has ended.
        case end
        /// ``ServerSession/opener(_:at:)`` of the session that was looked up.
        case opener(FrameOpener)
        /// ``ServerSession/claim(_:at:)`` has succeeded.
        case claimed
        /// There is no such session, or the number was claimed.
        case refused(PayloadRefusal)
    }

    /// What is to be done.
    package enum Action: Hashable, Sendable {
        /// Look up the session, and take `opener` or `refused`.
        case lookUp(FrameHead)
        /// Claim the number, and take `claimed` or `refused`.
        case claim(UInt64)
        /// Call the handler that plain requests reach.
        indirect case call(HTTPRequest)
        /// Content for the handler.
        case content([UInt8])
        /// The content has ended as it should.
        case finish
        /// Answer so, not sealed. Nothing was called.
        case refuse(PayloadRefusal)
        /// Answer so, sealed. Nothing was called.
        case reply(ContentRefusal)
        /// The handler was called with content that does not end as it should: end the upstream without a regular end,
        /// and close the connection.
        case abort
    }

    private enum Phase {
        case head
        case waiting
        case sealed
        case content
        case done
    }

    /// The most bytes that wait while the listener looks something up.
    private static let pendingLimit = 1 << 20

    private let origin: Origin
    private var phase = Phase.head
    private var pending: [UInt8] = []
    private var hasEnded = false
    private var number: UInt64 = 0
    private var opener: FrameOpener?
    private var plaintext: [UInt8] = []
    private var reader = BinaryHTTPReader(.request)
    private var isCalled = false
    /// What the request says that is left of its content; `nil` when it does not say.
    private var left: UInt64?

    /// - Parameter origin: the listener's.
    package init(origin: Origin) { self.origin = origin }

    /// Takes an event.
    ///
    /// - Returns: what is to be done, in this order. Nothing behind `refuse`, `reply`, `abort` and `finish`.
    package mutating func take(_ event: Event) -> [Action] {
        if case .done = phase { return [] }
        switch event {
        case .bytes(let bytes):
            guard !hasEnded, pending.count + bytes.count <= Self.pendingLimit else { return fail(.malformed) }
            pending.join(bytes)
        case .end: hasEnded = true
        case .opener(let opener):
            guard case .waiting = phase, self.opener == nil else { return [] }
            self.opener = opener
            phase = .sealed
        case .claimed:
            guard case .waiting = phase, opener != nil else { return [] }
            phase = .content
        case .refused(let refusal):
            guard case .waiting = phase else { return [] }
            return fail(refusal)
        }
        return advance()
    }

    /// As ``take(_:)`` of bytes, which need not be in an array: those of the content are opened where they lie.
    package mutating func take(bytes: UnsafeRawBufferPointer) -> [Action] {
        guard case .content = phase, pending.isEmpty, !hasEnded, bytes.count <= Self.pendingLimit else {
            return take(.bytes(Array(bytes)))
        }
        let opened = try? opener?.open(bytes)
        return content(opened)
    }

    private mutating func advance() -> [Action] {
        switch phase {
        case .head: head()
        case .waiting, .done: []
        case .sealed: firstChunk()
        case .content: nextContent()
        }
    }

    private mutating func head() -> [Action] {
        guard pending.count >= FrameHead.length else { return hasEnded ? fail(.malformed) : [] }
        guard let head = try? FrameHead(pending.prefix(FrameHead.length)), head.kind == .request else {
            return fail(.malformed)
        }
        pending.removeFirst(FrameHead.length)
        number = head.number
        phase = .waiting
        return [.lookUp(head)]
    }

    /// A number is claimed by who can seal, not by who has seen a head.
    private mutating func firstChunk() -> [Action] {
        guard let opened = open() else { return fail(.malformed) }
        plaintext.join(opened)
        guard opener?.hasBegun == true else { return hasEnded ? fail(.malformed) : [] }
        phase = .waiting
        return [.claim(number)]
    }

    private mutating func nextContent() -> [Action] {
        let opened = open()
        return content(opened)
    }

    /// Reads what has opened; `nil` stands for what is damaged.
    private mutating func content(_ opened: [UInt8]?) -> [Action] {
        guard let opened else { return fail(.malformed) }
        var bytes = plaintext
        plaintext = []
        if !opened.isEmpty { bytes.join(opened) }
        var actions: [Action] = []
        do throws(PayloadError) {
            for part in try reader.read(bytes) { actions += take(part) }
            if case .done = phase { return actions }
            guard hasEnded else { return actions }
            guard opener?.hasEnded == true else { return actions + fail(.malformed) }
            for part in try reader.finish() { actions += take(part) }
        } catch {
            return actions + failContent()
        }
        if case .done = phase { return actions }
        guard left ?? 0 == 0, isCalled else { return actions + failContent() }
        phase = .done
        return actions + [.finish]
    }

    private mutating func take(_ part: BinaryHTTPReader.Part) -> [Action] {
        if case .done = phase { return [] }
        switch part {
        case .request(let request):
            if let refusal = ContentRules.refusal(of: request, at: origin) { return end(.reply(refusal)) }
            if case .bytes(let length) = ContentRules.declaredLength(request) { left = length }
            isCalled = true
            return [.call(request)]
        case .content(let bytes):
            if let left {
                // The handler counts as the plain listener would have: a request of another length is none.
                guard left >= UInt64(bytes.count) else { return failContent() }
                self.left = left - UInt64(bytes.count)
            }
            return [.content(bytes)]
        case .response: return failContent()
        }
    }

    /// What the bytes that wait open; `nil` when they are damaged.
    private mutating func open() -> [UInt8]? {
        defer { pending = [] }
        return try? opener?.open(pending[...])
    }

    private mutating func fail(_ refusal: PayloadRefusal) -> [Action] { end(isCalled ? .abort : .refuse(refusal)) }

    private mutating func failContent() -> [Action] { end(isCalled ? .abort : .reply(.badRequest)) }

    private mutating func end(_ action: Action) -> [Action] {
        phase = .done
        (pending, plaintext) = ([], [])
        return [action]
    }
}

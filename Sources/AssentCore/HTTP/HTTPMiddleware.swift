/// A layer around the transport: it may change a call, look at the reply, or answer by itself.
public protocol HTTPMiddleware: Sendable {
    /// Handles `call`; `next` runs the layers below and, at the end, the transport.
    func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply
}

/// A transport with layers around it, outermost first. It is itself a transport.
public struct HTTPPipeline: HTTPTransport {
    /// What all calls share; each step through it copies one reference.
    fileprivate final class Chain: Sendable {
        let transport: any HTTPTransport
        let layers: [any HTTPMiddleware]

        init(_ transport: any HTTPTransport, layers: [any HTTPMiddleware]) {
            self.transport = transport
            self.layers = layers
        }
    }

    private let chain: Chain

    /// `layers` around `transport`, the first one outermost. When that is a pipeline itself, both become one.
    public init(_ transport: any HTTPTransport, layers: [any HTTPMiddleware]) {
        if let inner = (transport as? HTTPPipeline)?.chain {
            chain = Chain(inner.transport, layers: layers + inner.layers)
        } else {
            chain = Chain(transport, layers: layers)
        }
    }

    /// Sends `call` through all layers.
    @concurrent public func send(_ call: HTTPCall) async throws -> HTTPReply {
        try await Next(chain: chain, index: 0).send(call)
    }

    /// The rest of the way: a value, so that a layer may call it again.
    public struct Next: Sendable {
        fileprivate let chain: Chain
        fileprivate let index: Int

        /// Sends `call` through the remaining layers.
        public func send(_ call: HTTPCall) async throws -> HTTPReply {
            guard index < chain.layers.count else { return try await chain.transport.send(call) }
            return try await chain.layers[index].intercept(call, next: Next(chain: chain, index: index + 1))
        }
    }
}

extension HTTPPipeline: BeginsAnywhere {
    package var beginsAnywhere: Bool {
        (chain.transport as? any BeginsAnywhere)?.beginsAnywhere == true
            && chain.layers.allSatisfy { ($0 as? any BeginsAnywhere)?.beginsAnywhere == true }
    }
}

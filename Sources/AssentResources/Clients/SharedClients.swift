package import AssentAuthorization
import AssentCore

/// The clients that `Assent.share()` has shared: the one thing in the SDK that is global, filled once.
package final class SharedClients: Sendable {
    /// The process's.
    package static let process = SharedClients()

    private let clients = Locked<(user: UserClient, device: DeviceClient)?>(nil)

    /// Nothing is shared yet.
    package init() {}

    /// Shares these clients; the same ones may be shared again.
    ///
    /// - Throws: `ResourceError` with code `notConfigured` when others are shared.
    package func share(user: UserClient, device: DeviceClient) throws(ResourceError) {
        let isShared = clients.withLock { shared in
            guard let known = shared else {
                shared = (user, device)
                return true
            }
            return known.user === user && known.device === device
        }
        guard isShared else {
            throw ResourceError(
                .generic, .notConfigured, "Clients with another configuration are shared already.",
                suggestion: "Share one configuration, once.")
        }
    }

    /// The shared user client.
    ///
    /// - Throws: `ResourceError` with code `notConfigured`.
    package var user: UserClient {
        get throws(ResourceError) {
            guard let shared = clients.withLock({ $0?.user }) else { throw Self.notConfigured }
            return shared
        }
    }

    /// The shared device client.
    ///
    /// - Throws: `ResourceError` with code `notConfigured`.
    package var device: DeviceClient {
        get throws(ResourceError) {
            guard let shared = clients.withLock({ $0?.device }) else { throw Self.notConfigured }
            return shared
        }
    }

    private static var notConfigured: ResourceError {
        ResourceError(.generic, .notConfigured, "No clients are shared yet.")
    }
}

/// The user client of the process, for an app that cannot pass one along.
public enum SharedUserClient {
    /// What `Assent.share()` shared.
    ///
    /// - Throws: `ResourceError` with code `notConfigured` before that.
    public static var instance: UserClient {
        get throws { try SharedClients.process.user }
    }
}

/// The device client of the process, for an app that cannot pass one along.
public enum SharedDeviceClient {
    /// What `Assent.share()` shared.
    ///
    /// - Throws: `ResourceError` with code `notConfigured` before that.
    public static var instance: DeviceClient {
        get throws { try SharedClients.process.device }
    }
}

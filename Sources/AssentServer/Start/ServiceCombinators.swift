import ServiceLifecycle

/// Services that stop at the same time; a group's own stop one after the other.
struct Together: Service {
    let services: [any Service]

    func run() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            for service in services {
                group.addTask { try await service.run() }
            }
        }
    }
}

/// Runs `work` beside the listeners.
struct Starting: Service {
    let work: @Sendable () async throws -> Void

    func run() async throws { try await work() }
}

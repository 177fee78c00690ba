import AssentCore
import Foundation

extension SecretStoreContract {
    static let boundRules: [Rule] = [
        Rule("A name has 1 to 200 scalars") { store in
            for name in [String(repeating: "n", count: 200), String(repeating: "\u{1F511}", count: 200)] {
                try await store.update(name, to: Secret("x"), expected: .absent)
                try expect(try await store.value(name)?.value == Secret("x"), "a long name was lost")
            }
            for name in ["", String(repeating: "n", count: 201)] {
                try await expectError(.invalidInput) {
                    try await store.update(name, to: Secret("x"), expected: .any)
                }
                try await expectError(.invalidInput) { try await store.value(name) }
                try await expectError(.invalidInput) { try await store.lease(name, deadline: .distantFuture) }
            }
        },
        Rule("A value has at most 1 MiB") { store in
            let largest = [UInt8](repeating: 7, count: 1 << 20)
            try await store.update("name", to: Secret(bytes: largest), expected: .any)
            try await expectError(.invalidInput) {
                try await store.update("name", to: Secret(bytes: largest + [7]), expected: .any)
            }
            try expect(try await store.value("name")?.value.count == 1 << 20, "the largest value did not come back")
        },
    ]

    static let leaseRules: [Rule] = [
        Rule("A lease excludes others until it is released") { store in
            let lease = try await store.lease("name", deadline: .distantFuture)
            try await expectError(.busy) { try await store.lease("name", deadline: .distantPast) }
            await lease.release()
            let next = try await store.lease("name", deadline: .distantPast)
            await next.release()
        },
        Rule("Releasing a lease again does not let a third one in") { store in
            let first = try await store.lease("name", deadline: .distantFuture)
            await first.release()
            let second = try await store.lease("name", deadline: .distantFuture)
            await first.release()
            try await expectError(.busy) { try await store.lease("name", deadline: .distantPast) }
            await second.release()
        },
        Rule("Leases on different names are independent, and none stops updates") { store in
            let one = try await store.lease("one", deadline: .distantFuture)
            let two = try await store.lease("two", deadline: .distantPast)
            try await store.update("one", to: Secret("1"), expected: .absent)
            await one.release()
            await two.release()
        },
        Rule("A waiting lease ends with its task") { store in
            let held = try await store.lease("name", deadline: .distantFuture)
            let waiting = Task { try await store.lease("name", deadline: .distantFuture) }
            waiting.cancel()
            switch await waiting.result {
            case .success: throw Violation("a lease was given twice")
            case .failure(let error): try expect(error is CancellationError, "the error was not CancellationError")
            }
            await held.release()
            let next = try await store.lease("name", deadline: .distantPast)
            await next.release()
        },
        Rule("Work under exclusive access never overlaps, also when it fails") { store in
            struct Failed: Error {}
            let inside = Locked(0)
            let most = Locked(0)
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        try? await store.withExclusiveAccess("name", deadline: .distantFuture) {
                            let now = inside.withLock { count in
                                count += 1
                                return count
                            }
                            most.withLock { $0 = max($0, now) }
                            await Task.yield()
                            inside.withLock { $0 -= 1 }
                            if number.isMultiple(of: 3) { throw Failed() }
                        }
                    }
                }
            }
            let seen = most.withLock { $0 }
            try expect(seen == 1, "\(seen) tasks were inside at once")
        },
    ]
}

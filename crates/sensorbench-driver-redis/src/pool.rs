//! Which connection to a server takes the next operation.
//!
//! One that has nothing else to do, if there is one. Otherwise operations are pipelined, up to an equal share on each
//! connection, and one is filled before the next, in the order in which they got room: operations that were answered together go
//! out together, in one packet.

use std::collections::VecDeque;

/// The connections to one server, by number.
#[derive(Debug)]
pub struct Pool {
    /// Operations that a connection has in flight when all have equally many.
    share: usize,
    /// Connections without operations in flight.
    idle: Vec<usize>,
    /// Connections with operations in flight and room for more.
    with_room: VecDeque<usize>,
    has_room: Vec<bool>,
    /// Whose turn it is when none has room.
    turn: usize,
}

impl Pool {
    pub fn new(connections: usize, share: usize) -> Self {
        let idle = (0..connections).rev().collect();
        Self { share, idle, with_room: VecDeque::new(), has_room: vec![false; connections], turn: 0 }
    }

    /// Chooses a connection, which then has one operation more. `in_flight` returns how many one has.
    #[inline]
    pub fn choose(&mut self, in_flight: impl Fn(usize) -> usize) -> usize {
        let chosen = self.idle.pop().unwrap_or_else(|| self.with_room(&in_flight));
        self.note_room(chosen, in_flight(chosen) + 1);
        chosen
    }

    fn with_room(&mut self, in_flight: &impl Fn(usize) -> usize) -> usize {
        while let Some(&first) = self.with_room.front() {
            let then = in_flight(first) + 1;
            if then >= self.share {
                self.has_room[first] = false;
                self.with_room.pop_front();
            }
            if then <= self.share {
                return first;
            }
        }
        self.turn = (self.turn + 1) % self.has_room.len();
        self.turn
    }

    /// Notes that operations of a connection have ended, and how many are left.
    #[inline]
    pub fn note_ended(&mut self, connection: usize, left: usize) {
        if left == 0 {
            self.idle.push(connection);
        } else {
            self.note_room(connection, left);
        }
    }

    #[inline]
    fn note_room(&mut self, connection: usize, in_flight: usize) {
        if in_flight < self.share && !self.has_room[connection] {
            self.has_room[connection] = true;
            self.with_room.push_back(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Simulated {
        pool: Pool,
        in_flight: Vec<usize>,
    }

    impl Simulated {
        fn start(&mut self) -> usize {
            let chosen = self.pool.choose(|connection| self.in_flight[connection]);
            self.in_flight[chosen] += 1;
            chosen
        }

        fn end(&mut self, connection: usize, operations: usize) {
            self.in_flight[connection] -= operations;
            self.pool.note_ended(connection, self.in_flight[connection]);
        }
    }

    fn simulated(connections: usize, share: usize) -> Simulated {
        Simulated { pool: Pool::new(connections, share), in_flight: vec![0; connections] }
    }

    #[test]
    fn one_operation_each_while_there_are_enough_connections() {
        let mut simulated = simulated(3, 1);
        assert_eq!([simulated.start(), simulated.start(), simulated.start()], [0, 1, 2]);
        simulated.end(1, 1);
        assert_eq!(simulated.start(), 1);
        simulated.start();
        assert_eq!(simulated.in_flight.iter().sum::<usize>(), 4, "more than there should be are taken as well");
    }

    #[test]
    fn what_was_answered_together_goes_out_together() {
        let mut simulated = simulated(2, 4);
        while simulated.in_flight.iter().sum::<usize>() < 8 {
            simulated.start();
        }
        assert_eq!(simulated.in_flight, [4, 4]);
        for connection in [1, 0, 0, 1] {
            simulated.end(connection, 4);
            assert_eq!([(); 4].map(|()| simulated.start()), [connection; 4]);
        }
        simulated.end(0, 2);
        simulated.end(1, 3);
        assert_eq!([(); 5].map(|()| simulated.start()), [0, 0, 1, 1, 1]);
    }
}

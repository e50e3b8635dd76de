"""What a service asks of its sockets."""

import socket

from fewlier.service.server import Address


def test_answers_are_sent_at_once_and_do_not_wait_for_the_client_to_acknowledge():
    with (
        Address("127.0.0.1", 0, (), None).listen() as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
